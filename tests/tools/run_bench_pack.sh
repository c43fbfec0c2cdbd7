#!/bin/sh
# Pack files beside onnxruntime's own optimized files, on the topologies and all models.
#
# usage: tests/tools/run_bench_pack.sh BENCH_PROGRAM MODELS_DIR [OPTION...]   (of bench_pack.py)
set -u
program=$1
models=$2
shift 2
root=$(cd "$(dirname "$0")/../.." && pwd)
python=$root/build/venv/bin/python
if ! "$root/tests/tools/setup_venv.sh" || [ ! -d "$models" ]; then
    echo "bench-pack: skipped, onnxruntime or $models is not there" >&2
    exit 3
fi
library=$(ls "$root"/build/venv/lib/python3*/site-packages/onnxruntime/capi/libonnxruntime.so.* |
          head -n 1)
filled=$(sh "$root/tests/tools/fill_topologies.sh" "$models" "$python") || exit 1
# shellcheck disable=SC2086
exec "$python" "$root/tests/tools/bench_pack.py" "$program" "$root/build/bin" \
    "$root/build/bench-pack" "$library" $filled "$models" "$@"
