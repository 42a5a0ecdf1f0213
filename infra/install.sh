#!/bin/sh
# install.sh VENV LOCK: a virtual environment with exactly what the lock names, and Winnow itself.
set -eu
venv=$1
lock=$2

fail() {
    echo "install: $1" >&2
    exit 1
}

command -v "$PYTHON" >/dev/null || fail "there is no '$PYTHON'; install Python 3.11 to 3.13 or name one: make PYTHON=python3.12"
"$PYTHON" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' ||
    fail "$("$PYTHON" --version) is not supported; install Python 3.11 to 3.13 or name one: make PYTHON=python3.12"
[ "$(uname -s)" = Linux ] || fail "vLLM runs on Linux; this is $(uname -s)"

if [ ! -x "$venv/bin/python" ]; then
    rm -rf "$venv"
    "$PYTHON" -m venv "$venv" || fail "the venv module is missing; on Debian and Ubuntu: apt-get install python3-venv"
fi

echo "installing what $lock names into $venv (two minutes the first time)"
set -- install --quiet --quiet --disable-pip-version-check --no-deps --requirement "$lock"
if ! "$venv/bin/pip" "$@" ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"}; then
    fail "packages of $lock could not be installed (see above).
If torch ...+cpu was not found: PyTorch publishes it on its own index of CPU wheels, which its
installation page names; run the same command again with TORCH_INDEX=<that URL>.
On a machine with CUDA, use TARGET=gpu."
fi
"$venv/bin/pip" install --quiet --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
