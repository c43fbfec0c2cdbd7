#!/bin/sh
# run_abi_alone.sh PROGRAMS LIBRARY [RUNNER] - the drop-in's scenarios and lifetimes with nothing to compare with, for
# builds with sanitizers, or under RUNNER (valgrind). A finding ends the program with a status of its own.
set -u
programs=$1 library=$2 runner=${3:-}
root=$(cd "$(dirname "$0")/../.." && pwd)
log=$root/build/test/abi-alone.log
mkdir -p "$root/build/test"
passed=0 failed=0

case $runner in
"") ;;
valgrind)
    if ! command -v valgrind >/dev/null; then
        echo "skip abi under valgrind: it isn't installed"
        echo "0 passed, 0 failed, 1 skipped"
        exit 0
    fi
    runner="valgrind -q --error-exitcode=98 --leak-check=full --errors-for-leak-kinds=definite"
    ;;
*)
    echo "run_abi_alone: no runner '$runner'" >&2
    exit 2
    ;;
esac
# custom_ops.c is a library and a part of the program, by intention: its globals are there twice.
ASAN_OPTIONS=exitcode=98:allocator_may_return_null=1:detect_odr_violation=0
UBSAN_OPTIONS=exitcode=98:print_stacktrace=1
TSAN_OPTIONS=exitcode=98
export ASAN_OPTIONS UBSAN_OPTIONS TSAN_OPTIONS

run() { # run NAME COMMAND...
    name=$1
    shift
    # shellcheck disable=SC2086
    $runner "$@" >"$log" 2>&1
    status=$?
    line=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$log" | tail -n 1)
    if [ $status -ne 0 ] || [ -z "$line" ]; then
        failed=$((failed + 1))
        echo "FAIL $name: exit $status"
        grep -v '^The requested API' "$log" | head -n "${FINDINGS:-60}"
        return
    fi
    passed=$((passed + ${line%% *}))
    echo "ok $name: $line"
}

"$root/build/venv/bin/python" "$root/tests/tools/make_abi_models.py" "$root/build/abi" || exit 1
CUSTOM_OPS=$programs/custom_ops.so run scenarios "$programs/differ" "$library" - "$root/build/abi" "$root/build/conformance"
run lifetimes "$programs/lifetimes" "$library" "$root/build/abi"
echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
