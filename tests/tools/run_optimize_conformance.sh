#!/bin/sh
# Every conformance model after levels 1 and 2 of ort_model_optimize: still passes here from the
# file that was written, and on onnxruntime where that runs the original; then the real models of
# MODELS (default ../shared/models), verified by ort-optimize and run on onnxruntime.
#
# usage: tests/tools/run_optimize_conformance.sh CONFORMANCE_PROGRAM
set -u
program=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
python=$root/build/venv/bin/python
check=$root/tests/tools/check_written.py
models=${MODELS:-$root/../shared/models}
written=$(mktemp -d) || exit 1
trap 'rm -rf "$written"' EXIT
failed=0
for level in 1 2; do
    mkdir "$written/$level" "$written/models$level"
    echo "# level $level, here"
    "$program" --isa "${ORT_ISA:-scalar}" --ignore "$root/tests/onnx/ignore.txt" --list-failures \
        --optimize $level --written "$written/$level" "$root/build/conformance" |
        grep '^FAIL\|^UNSUPPORTED\|passed, ' | tee "$written/out"
    grep -q ' 0 failed' "$written/out" || failed=1
    echo "# level $level, onnxruntime"
    "$python" "$check" "$written/$level" "$root/build/conformance" 2>/dev/null || failed=1
    [ -d "$models" ] || continue
    echo "# level $level, real models"
    for model in "$models"/*/model.onnx; do
        name=$(basename "$(dirname "$model")")
        "$root/build/bin/ort-optimize" "$model" --level $level -q -o "$written/models$level/$name.onnx" ||
            { echo "not ok $name: ort-optimize"; failed=1; }
    done
    "$python" "$check" "$written/models$level" "$models" 2>/dev/null || failed=1
done
exit $failed
