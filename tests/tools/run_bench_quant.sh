#!/bin/sh
# ort-quantize static beside onnxruntime.quantization, and --effort beside NNCF, on all float models;
# or ort-quantize dynamic beside its quantize_dynamic.
#
# usage: tests/tools/run_bench_quant.sh MODELS_DIR [--dynamic] [OPTION...]
#
# OPTIONs are those of bench_quant.py, or of bench_quant_dynamic.py. Peers' files are made once, in
# build/bench/quant or build/bench/quant_dynamic.
set -u
models=$1
shift
root=$(cd "$(dirname "$0")/../.." && pwd)
python=$root/build/venv-quant/bin/python
if ! sh "$root/tests/tools/setup_venv.sh" --quant; then
    echo "bench-quant: skipped, the peers can't be installed here" >&2
    exit 3
fi
if [ ! -d "$models" ]; then
    echo "bench-quant: skipped, $models is not there" >&2
    exit 3
fi
bench=quant
if [ "${1:-}" = --dynamic ]; then
    bench=quant_dynamic
    shift
fi
nncf=
for option in "$@"; do
    [ "$option" = --effort ] && nncf=$root/build/venv-nncf/bin/python
done
if [ -n "$nncf" ] && ! sh "$root/tests/tools/setup_venv.sh" --nncf; then
    echo "bench-quant: skipped, NNCF can't be had here; without --effort it isn't needed" >&2
    exit 3
fi
filled=$(sh "$root/tests/tools/fill_topologies.sh" "$models" "$python") || exit 1
if [ "$bench" = quant ]; then
    set -- --python-of-nncf "$nncf" "$@"
fi
# shellcheck disable=SC2086
exec "$python" "$root/tests/tools/bench_$bench.py" "$root/build/bin" "$root/build/bench/$bench" \
    "$models" $filled "$@"
