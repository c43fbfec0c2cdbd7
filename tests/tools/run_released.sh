#!/bin/sh
# ONNX's backend tests as its releases carried them, from build/released (make_released.py): here on every
# kernel tier, then on onnxruntime. What doesn't hold here stands in tests/onnx/released.txt with a reason.
#
# usage: tests/tools/run_released.sh CONFORMANCE_PROGRAM
#
# Without a network, and without the wheels of an earlier run, the tests are skipped and counted as one
# skip; with CI=true that is a failure.
set -u
program=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
python=$root/build/venv/bin/python
cases=$root/build/released/cases
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT

skip() {
    if [ "${CI:-}" = true ]; then
        echo "released: $1, and with CI=true that is a failure"
        echo "0 passed, 1 failed, 0 skipped"
        exit 1
    fi
    echo "released: skipped, $1"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
}

"$root/tests/tools/setup_venv.sh"
case $? in
0) ;;
3) skip "the onnx package can't be installed here" ;;
*) exit 1 ;;
esac
"$python" "$root/tests/tools/make_conformance.py" || exit 1
"$python" "$root/tests/tools/make_released.py"
case $? in
0) ;;
3) skip "wheels of old releases of onnx can't be downloaded here" ;;
*) exit 1 ;;
esac

reasons=$root/tests/onnx/released.txt
"$program" --isa "${ORT_ISA:-all}" --ignore "$reasons" --list-failures "$cases" >"$out"
here=$?
grep -E '^(FAIL|UNSUPPORTED|tier|[^ ]*released.txt: )|failed' "$out"
"$python" "$root/tests/tools/released_runs.py" "$out" "$reasons" "$cases"
there=$?
[ $here -eq 0 ] && [ $there -eq 0 ]
