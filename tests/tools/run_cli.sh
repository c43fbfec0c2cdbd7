#!/bin/sh
# run_cli.sh [FILE...]: the bats tests of the tools, in TAP, with a closing count. As many files run at a time as
# there are processors; those that call make here are one piece, run one after another: two makes in one tree
# write the same files.
cd "$(dirname "$0")/../.." || exit 1
command -v bats >/dev/null 2>&1 || { echo "0 passed, 1 failed, 0 skipped"; echo "bats is missing" >&2; exit 1; }
[ $# -gt 0 ] || set -- tests/cli/*.bats
logs=$(mktemp -d) || exit 1
trap 'rm -rf "$logs"' EXIT
# The longest first, so that none of them is left alone at the end.
{
    grep -l -- '-C "$ROOT"' "$@" | xargs echo
    grep -L -- '-C "$ROOT"' "$@" | xargs -r ls -S
} | grep . | xargs -P "$(nproc 2>/dev/null || echo 2)" -I '{}' \
    sh -c 'bats --tap $1 >"$(mktemp "$0/XXXXXX")" 2>&1' "$logs" '{}'
status=$?
out=$(cat "$logs"/*)
echo "$out"
p=$(echo "$out" | grep -c '^ok ')
s=$(echo "$out" | grep -c '^ok .*# skip')
f=$(echo "$out" | grep -c '^not ok ')
planned=$(echo "$out" | sed -n 's/^1\.\.\([0-9]*\)$/\1/p' | awk '{ n += $1 } END { print n + 0 }')
if [ "$planned" -eq 0 ] || [ "$planned" -ne $((p + f)) ]; then # a file that isn't there, or that stopped
    echo "not ok $((p + f)) of $planned tests ran"
    f=$((f + 1)) status=1
fi
if [ "${CI:-}" = true ] && [ "$s" -gt 0 ]; then # in CI what is missing must be installed
    echo "$out" | grep '^ok .*# skip' | sed 's/^ok/not ok/'
    echo "$((p - s)) passed, $((f + s)) failed, 0 skipped"
    exit 1
fi
echo "$((p - s)) passed, $f failed, $s skipped"
exit $status
