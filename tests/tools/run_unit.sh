#!/bin/sh
# run_unit.sh PROGRAM...: runs unit test programs that print "ok NAME" and "not ok NAME: why" lines; as many run at a
# time as there are processors, and their lines come in the order of the programs.
logs=$(mktemp -d) || exit 1
trap 'rm -rf "$logs"' EXIT
printf '%s\n' "$@" | xargs -P "$(nproc 2>/dev/null || echo 2)" -I '{}' \
    sh -c '"$1" >"$0/${1##*/}.out" 2>&1; echo $? >"$0/${1##*/}.status"' "$logs" '{}'
passed=0 failed=0
for program in "$@"; do
    name=$(basename "$program")
    cat "$logs/$name.out"
    p=$(grep -c '^ok ' "$logs/$name.out")
    f=$(grep -c '^not ok ' "$logs/$name.out")
    status=$(cat "$logs/$name.status" 2>/dev/null || echo unknown)
    if [ "$status" != 0 ] && [ "$f" -eq 0 ]; then
        echo "not ok $name: exit $status"
        f=1
    fi
    passed=$((passed + p)) failed=$((failed + f))
done
echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
