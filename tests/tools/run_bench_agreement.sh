#!/bin/sh
# How often quantized classifiers answer as their float models do, over 1,000 inputs each.
#
# usage: tests/tools/run_bench_agreement.sh MODELS_DIR [OPTION...]
#
# OPTIONs are those of bench_agreement.py. The inputs and files lie in build/bench/agreement.
set -u
models=$1
shift
root=$(cd "$(dirname "$0")/../.." && pwd)
if ! sh "$root/tests/tools/setup_venv.sh" --quant; then
    echo "bench-agreement: skipped, the photographs can't be had here" >&2
    exit 3
fi
if [ ! -d "$models" ]; then
    echo "bench-agreement: skipped, $models is not there" >&2
    exit 3
fi
exec "$root/build/venv-quant/bin/python" "$root/tests/tools/bench_agreement.py" "$root/build/bin" \
    "$root/build/bench/agreement" "$models" "$@"
