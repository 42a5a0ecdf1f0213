#!/bin/sh
# beside.sh ASIDE MAIN: run two commands at once. What ASIDE says, which has no terminal, is shown when MAIN has
# ended; the exit code is that of MAIN, or of ASIDE where MAIN ended well.
set -u

said=$(mktemp)
sh -c "$1" >"$said" 2>&1 </dev/null &
aside=$!
trap 'kill "$aside" 2>/dev/null; rm -f "$said"' EXIT
trap 'exit 130' INT TERM HUP

sh -c "$2"
code=$?
wait "$aside"
code_aside=$?
printf '%s\n' "beside it: $1"
cat "$said"
[ "$code" -ne 0 ] || code=$code_aside
exit "$code"
