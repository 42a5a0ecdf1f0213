#!/bin/sh
# wheel.sh PYTHON LOCK FOLDER: build the wheel and try it as a user would: an environment of its own, plain pip
# and whatever releases it finds, a folder with modules of our names. Only PyTorch is held to the lock's build,
# as its newest one brings gigabytes for CUDA along.
set -eu
build_python=$1
lock=$2
mkdir -p "$3"
folder=$(cd "$3" && pwd)

fail() {
    echo "wheel: $1" >&2
    exit 1
}

. "$(dirname "$0")/torch.sh"

rm -rf "$folder/venv" "$folder/work" "$folder"/*.whl
mkdir -p "$folder/work/flows" "$folder/work/storage"
"$build_python" -m hatchling build --target wheel --directory "$folder"
grep '^torch==' "$lock" | cut -d' ' -f1 >"$folder/constraints.txt"

"$build_python" -m venv "$folder/venv"
pip() {
    "$folder/venv/bin/python" -m pip --quiet --disable-pip-version-check "$@"
}
wheel=$(ls "$folder"/*.whl)
install_torch "$folder/venv/bin/python" "$lock"
pip install --constraint "$folder/constraints.txt" "$wheel[local]" ||
    fail "plain pip could not install it (see above)"
pip check || fail "what plain pip installed does not fit together (see above)"

PATH="$folder/venv/bin:$PATH"
export PREFECT_HOME="$folder/work/.winnow/prefect" HF_HOME="$folder/work/.winnow/huggingface"
cd "$folder/work"
for file in tasks.py algorithms.py infra.py flows/__init__.py storage/__init__.py; do
    echo "raise SystemExit('a module of the user')" >"$file"
done

storage=sqlite:///.winnow/demo/winnow.db
winnow --version
winnow demo --quick
winnow resume quick --storage "$storage" | grep -q 'quick: winner' || fail "a decided campaign does not say its winner"
winnow query quick leaderboard --storage "$storage"
winnow db check --storage "$storage"
python -c "import winnow; print(winnow.open('$storage')['quick'].answer.outcome)" | grep -qx winner ||
    fail "the Python API does not know the winner"
echo "the wheel works where plain pip installed it, in Python $(python -c 'import platform; print(platform.python_version())')"
