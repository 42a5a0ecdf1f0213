#!/bin/sh
# versions.sh highest|lowest-direct VENV: an environment with the newest, or the oldest, releases that pyproject.toml allows,
# without vLLM. Needs uv.
set -eu
cd "$(dirname "$0")/.."
command -v uv >/dev/null || { echo "versions: this needs uv: pip install uv" >&2; exit 1; }
uv venv --quiet --clear --python "${PYTHON:-3.11}" "$2"
# The server of Prefect 3.7 and 3.8 does not start with later releases of FastAPI.
if [ "$1" = lowest-direct ]; then old='fastapi<0.137'; else old=fastapi; fi
uv pip install --quiet --python "$2/bin/python" --resolution "$1" --override infra/locks/overrides.txt \
    --override infra/locks/cpu-overrides.txt "$old" --editable '.[dev,embed,hub,judges,litellm,local,mlflow,report,view]'
