#!/bin/sh
# Resolves both locks anew from pyproject.toml. They are installed with --no-deps: they are complete.
set -eu
cd "$(dirname "$0")/../.."
resolve() {
    target=$1
    shift
    uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --no-header --no-annotate \
        --constraint infra/locks/constraints.txt --override infra/locks/overrides.txt \
        --extra dev --extra hub --extra judges --extra litellm --extra local --extra embed --extra ray --extra report \
        --extra view --extra mlflow --extra wandb --extra "$target" "$@" \
        --output-file "infra/locks/$target.txt"
    # What no supported machine installs.
    sed -i "/; sys_platform == 'never'$/d;/; sys_platform == 'win32'$/d" "infra/locks/$target.txt"
}
resolve cpu --override infra/locks/cpu-overrides.txt
resolve gpu
