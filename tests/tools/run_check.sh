#!/bin/sh
# run_check.sh: what is too slow for every test run: the suites again under AddressSanitizer and
# UndefinedBehaviorSanitizer, ONNX's own tests on every kernel tier. Closes with the sum of the counts.
set -u
cd "$(dirname "$0")/../.." || exit 1
passed=0 failed=0 skipped=0
mkdir -p build/check

count() { # count NAME LOG STATUS
    line=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$2" | tail -n 1)
    [ -n "$line" ] || line="0 passed, 1 failed, 0 skipped"
    echo "== $1: $line"
    grep -E '^tier' "$2"
    grep -E '^not ok|^FAIL|runtime error|ERROR: AddressSanitizer' "$2" | head -n 20
    set -- $(echo "$line" | tr -c '0-9\n' ' ')
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + ${3:-0}))
}

make -s -j2 all || exit 1
make_san() { # make_san TARGET
    ASAN_OPTIONS=detect_leaks=1 make -s -j2 CFLAGS="-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined" \
        LDFLAGS="-fsanitize=address,undefined" ATTACK="--minutes 1" "$1" >"build/check/san-$1.log" 2>&1
}
run_san() { # run_san TARGET
    make_san "$1"
    count "$1 under ASan and UBSan" "build/check/san-$1.log"
}
for target in unit conformance contrib models; do
    run_san $target
done
make_san all
sh tests/tools/run_leaks.sh build/bin >build/check/leaks.log 2>&1
count "leaks of the tools" build/check/leaks.log
sh tests/tools/run_hostile.sh build/bin >build/check/hostile.log 2>&1
count "hostile values and files, every tier" build/check/hostile.log
# Whatever is read: good and bad models, every format. An exit status of 99 is no test's.
(cd tests/cli && ls attacks.bats bad_*.bats check*.bats csv.bats external_data.bats formats.bats hostile.bats sets.bats \
    tensor_files.bats tool_edges.bats unfinished.bats) |
    sed 's|^|tests/cli/|' |
    ASAN_OPTIONS=detect_leaks=0:exitcode=99:allocator_may_return_null=1 UBSAN_OPTIONS=exitcode=99 \
        xargs sh tests/tools/run_cli.sh >build/check/cli.log 2>&1
count "bad models and files, the tools" build/check/cli.log
make_san attack
count "attacks (one minute)" build/check/san-attack.log
make -s all
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
