#!/bin/sh
# Fill the topologies into build/topologies and make the bench's own models in build/bench/nets (once;
# 1.8 GB), and run the benchmark beside the peers of tests/requirements-bench.txt, in build/venv-bench.
#
# usage: tests/tools/run_bench.sh PROGRAM MODELS_DIR [OPTION...]   (options of tests/bench/bench.c)
#
# ONLY="NAME ..." fills, makes and times only those; NO_TOPOLOGIES=1 leaves out what is filled.
# TFLITE_DIR: the MLPerf Tiny models as published (default MODELS_DIR/../tflite).
set -u
program=$1
models=$2
shift 2
root=$(cd "$(dirname "$0")/../.." && pwd)
venv=$root/build/venv-bench
if ! "$root/tests/tools/setup_venv.sh" --bench; then
    echo "bench: skipped, its peers can't be installed here" >&2
    exit 3
fi
packages=$(echo "$venv"/lib/python3*/site-packages)
peers="--onnxruntime $(ls "$packages"/onnxruntime/capi/libonnxruntime.so.* | head -n 1)"
peers="$peers --openvino $(ls "$packages"/openvino/libs/libopenvino_c.so.* | head -n 1)"
peers="$peers --tract $(ls "$packages"/tract/tract.*.so | head -n 1)"
peers="$peers --python $venv/bin/python --python-worker $root/tests/bench/peers/worker.py"
TFLITE_DIR=${TFLITE_DIR:-$models/../tflite}
TFLITE_CACHE=$root/build/bench/tflite
ORT_BIN=$root/build/bin
export TFLITE_DIR TFLITE_CACHE ORT_BIN
[ -d "$TFLITE_DIR" ] || echo "bench: no $TFLITE_DIR: MLPerf Tiny models in LiteRT's form only" >&2
filled=
if [ -z "${NO_TOPOLOGIES:-}" ]; then
    filled=$(sh "$root/tests/tools/fill_topologies.sh" "$models" "$venv/bin/python") || exit 1
fi
mkdir -p "$root/build/bench/nets"
# shellcheck disable=SC2086
"$venv/bin/python" "$root/tests/bench/nets/make.py" "$root/build/bench/nets" ${ONLY:-} >&2 || exit 1
# shellcheck disable=SC2086
exec env ORT_DISABLE_TELEMETRY=1 "$program" $peers --scratch "$root/build/bench" \
    --families "$root/tests/bench/families.txt" "$@" "$models" $filled "$root/build/bench/nets"
