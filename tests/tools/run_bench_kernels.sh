#!/bin/sh
# Kernels beside the machine's peak, their goals and OpenBLAS, one thread (bench_kernels.py).
#
# usage: tests/tools/run_bench_kernels.sh MODELS_DIR
#
# Whole models come from build/topologies, which run_bench.sh fills; OpenBLAS from the numpy wheel.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
if ! "$root/tests/tools/setup_venv.sh"; then
    echo "bench-kernels: skipped, its packages can't be installed here" >&2
    exit 3
fi
topologies=$root/build/topologies
for name in resnet50 mobilenet_v2 bert_base; do
    [ -f "$topologies/$name/inputs.npz" ] || [ ! -f "$1/fill_weights.py" ] ||
        "$root/build/venv/bin/python" "$1/fill_weights.py" "$topologies" "$name" >/dev/null || exit 1
done
mkdir -p "$root/build/bench"
exec "$root/build/venv/bin/python" "$root/tests/tools/bench_kernels.py" "$root/build/bin" \
    "$root/build/bench" "$topologies" "$1"
