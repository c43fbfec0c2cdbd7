#!/bin/sh
# Fill the topologies into build/topologies (once; 1.5 GB) and run the benchmark beside onnxruntime,
# OpenVINO and tract, whose wheels go to build/venv and build/venv-bench.
#
# usage: tests/tools/run_bench.sh PROGRAM MODELS_DIR [OPTION...]   (options of tests/bench/bench.c)
#
# ONLY="NAME ..." fills and times only those topologies; NO_TOPOLOGIES=1 leaves them out.
set -u
program=$1
models=$2
shift 2
root=$(cd "$(dirname "$0")/../.." && pwd)
venv=$root/build/venv
if ! "$root/tests/tools/setup_venv.sh"; then
    echo "bench: skipped, onnxruntime can't be installed here" >&2
    exit 3
fi
packages=$(echo "$venv"/lib/python3*/site-packages)
peers="--onnxruntime $(ls "$packages"/onnxruntime/capi/libonnxruntime.so.* | head -n 1)"
if "$root/tests/tools/setup_venv.sh" --bench; then
    packages=$(echo "$venv"-bench/lib/python3*/site-packages)
    peers="$peers --openvino $(ls "$packages"/openvino/libs/libopenvino_c.so.* | head -n 1)"
    peers="$peers --tract $(ls "$packages"/tract/tract.*.so | head -n 1)"
else
    echo "bench: without OpenVINO and tract, which can't be installed here" >&2
fi
filled=
if [ -z "${NO_TOPOLOGIES:-}" ]; then
    filled=$(sh "$root/tests/tools/fill_topologies.sh" "$models" "$venv/bin/python") || exit 1
fi
mkdir -p "$root/build/bench"
# shellcheck disable=SC2086
exec env ORT_DISABLE_TELEMETRY=1 "$program" $peers --scratch "$root/build/bench" \
    --families "$root/tests/bench/families.txt" "$@" "$models" $filled
