#!/bin/sh
# Generate ONNX's own tests into build/conformance and run them on every kernel tier of the machine, or
# on the one that ORT_ISA names.
#
# usage: tests/tools/run_conformance.sh PROGRAM [OPTION...]   (options of tests/onnx/conformance.c)
#
# Without a network, and without the packages of an earlier run, the tests are skipped and counted
# as one skip; with CI=true that is a failure.
set -u
program=$1
shift
root=$(cd "$(dirname "$0")/../.." && pwd)
"$root/tests/tools/setup_venv.sh"
ready=$?
if [ $ready -eq 3 ] && [ ! -f "$root/build/conformance/.stamp" ]; then
    if [ "${CI:-}" = true ]; then
        echo "conformance: the onnx package can't be installed, and with CI=true that is a failure"
        echo "0 passed, 1 failed, 0 skipped"
        exit 1
    fi
    echo "conformance: skipped, the onnx package can't be installed here"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
elif [ $ready -eq 0 ]; then
    "$root/build/venv/bin/python" "$root/tests/tools/make_conformance.py" || exit 1
elif [ $ready -ne 3 ]; then
    exit 1
fi
exec "$program" --isa "${ORT_ISA:-all}" --ignore "$root/tests/onnx/ignore.txt" "$@" "$root/build/conformance"
