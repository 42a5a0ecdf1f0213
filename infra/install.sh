#!/bin/sh
# install.sh VENV LOCK: a virtual environment with exactly what the lock names, and Winnow itself.
set -eu
venv=$1
lock=$2

fail() {
    echo "install: $1" >&2
    exit 1
}

. "$(dirname "$0")/torch.sh"

command -v "$PYTHON" >/dev/null || fail "there is no '$PYTHON'; install Python 3.11 to 3.13 or name one: make PYTHON=python3.12"
"$PYTHON" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' ||
    fail "$("$PYTHON" --version) is not supported; install Python 3.11 to 3.13 or name one: make PYTHON=python3.12"
[ "$(uname -s)" = Linux ] || fail "vLLM runs on Linux; this is $(uname -s)"

if [ ! -x "$venv/bin/python" ]; then
    rm -rf "$venv"
    "$PYTHON" -m venv "$venv" || fail "the venv module is missing; on Debian and Ubuntu: apt-get install python3-venv"
fi

echo "installing what $lock names into $venv (two minutes the first time)"
install_torch "$venv/bin/python" "$lock"
pip() {
    "$venv/bin/python" -m pip install --quiet --quiet --disable-pip-version-check --no-deps "$@"
}
pip --requirement "$lock" || fail "packages of $lock could not be installed (see above)"
pip --no-build-isolation --editable .
