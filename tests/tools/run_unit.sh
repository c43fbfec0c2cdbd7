#!/bin/sh
# run_unit.sh PROGRAM...: runs unit test programs that print "ok NAME" and "not ok NAME: why" lines.
passed=0 failed=0
for program in "$@"; do
    out=$("$program" 2>&1)
    status=$?
    echo "$out"
    p=$(echo "$out" | grep -c '^ok ')
    f=$(echo "$out" | grep -c '^not ok ')
    if [ $status -ne 0 ] && [ "$f" -eq 0 ]; then
        echo "not ok $(basename "$program"): exit $status"
        f=1
    fi
    passed=$((passed + p)) failed=$((failed + f))
done
echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
