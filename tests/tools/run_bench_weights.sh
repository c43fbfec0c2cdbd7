#!/bin/sh
# Weights of 4 bits beside onnxruntime's (bench_weights.py).
#
# usage: tests/tools/run_bench_weights.sh MODELS_DIR
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
"$root/tests/tools/setup_venv.sh" --parity || exit
exec "$root/build/venv-parity/bin/python" "$root/tests/tools/bench_weights.py" "$root/build/bin" \
    "$1/llama_byte_2m_trained/model.onnx"
