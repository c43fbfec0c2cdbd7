#!/bin/sh
# Fill the topologies into build/topologies (once; 1.5 GB) and run the benchmark beside onnxruntime.
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
library=$(ls "$venv"/lib/python3*/site-packages/onnxruntime/capi/libonnxruntime.so.* | head -n 1)
filled=
if [ -z "${NO_TOPOLOGIES:-}" ] && [ -f "$models/fill_weights.py" ]; then
    filled=$root/build/topologies
    for source in "$models"/topologies/*.onnx; do
        name=$(basename "$source" .onnx)
        case " ${ONLY:-$name} " in *" $name "*) ;; *) continue ;; esac
        [ -f "$filled/$name/inputs.npz" ] && continue
        echo "bench: filling $name" >&2
        "$venv/bin/python" "$models/fill_weights.py" "$filled" "$name" >/dev/null || exit 1
    done
fi
mkdir -p "$root/build/bench"
# shellcheck disable=SC2086
exec env ORT_DISABLE_TELEMETRY=1 "$program" --peer "$library" --scratch "$root/build/bench" \
    "$@" "$models" $filled
