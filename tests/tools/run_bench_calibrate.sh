#!/bin/sh
# Calibration beside onnxruntime.quantization (bench_calibrate.py).
#
# usage: tests/tools/run_bench_calibrate.sh MODELS_DIR [OPTION...]
set -u
models=$1
shift
root=$(cd "$(dirname "$0")/../.." && pwd)
if ! sh "$root/tests/tools/setup_venv.sh"; then
    echo "bench-calibrate: skipped, onnxruntime can't be installed here" >&2
    exit 3
fi
if [ ! -d "$models" ]; then
    echo "bench-calibrate: skipped, $models is not there" >&2
    exit 3
fi
exec "$root/build/venv/bin/python" "$root/tests/tools/bench_calibrate.py" "$root/build/bin" "$models" "$@"
