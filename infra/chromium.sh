#!/bin/sh
# chromium.sh: see to it that there is a Chromium or Chrome, which the tests of pages and pictures drive.
set -eu

for name in chromium chromium-browser google-chrome; do
    command -v "$name" >/dev/null && exit 0
done

fail() {
    echo "chromium: $1" >&2
    exit 1
}

remedy="install Chromium or Chrome and run this again; on Debian: apt-get install chromium"
command -v apt-get >/dev/null || fail "there is no browser to test with; $remedy"
[ "$(id -u)" = 0 ] || fail "there is no browser to test with, and only root may install one; $remedy"

echo "installing Chromium, which the tests of pages drive"
export DEBIAN_FRONTEND=noninteractive
apt-get update --quiet --quiet && apt-get install --quiet --quiet --yes --no-install-recommends chromium ||
    fail "apt-get could not install it (see above); $remedy"
command -v chromium >/dev/null || fail "apt-get installed no command named chromium; $remedy"
