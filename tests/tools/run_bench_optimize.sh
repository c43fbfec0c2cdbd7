#!/bin/sh
# ort-optimize beside the simplifiers of requirements-optimize.txt and onnxruntime, on all models.
#
# usage: tests/tools/run_bench_optimize.sh BENCH_PROGRAM MODELS_DIR [OPTION...]
#
# OPTIONs are those of bench_optimize.py. Peers' files are made once, in build/bench-optimize.
set -u
program=$1
models=$2
shift 2
root=$(cd "$(dirname "$0")/../.." && pwd)
python=$root/build/venv-optimize/bin/python
if ! sh "$root/tests/tools/setup_venv.sh" --optimize; then
    echo "bench-optimize: skipped, the peers can't be installed here" >&2
    exit 3
fi
if [ ! -d "$models" ]; then
    echo "bench-optimize: skipped, $models is not there" >&2
    exit 3
fi
filled=$(sh "$root/tests/tools/fill_topologies.sh" "$models" "$python") || exit 1
# shellcheck disable=SC2086
exec "$python" "$root/tests/tools/bench_optimize.py" "$program" "$root/build/bench-optimize" \
    "$models" $filled "$@"
