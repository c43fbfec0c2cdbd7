#!/bin/sh
# Two threads against one where processors are shared, here and in onnxruntime when it is installed,
# and in OpenVINO when `make bench` has installed it.
#
# usage: tests/tools/run_bench_shared.sh BENCH_PROGRAM MODELS_DIR [OPTION...]   (of bench_shared.py)
set -u
program=$1
models=$2
shift 2
root=$(cd "$(dirname "$0")/../.." && pwd)
peer=
if [ ! -d "$models" ]; then
    echo "bench-shared: skipped, $models is not there" >&2
    exit 3
fi
if "$root/tests/tools/setup_venv.sh"; then
    peer="--onnxruntime $(ls "$root"/build/venv/lib/python3*/site-packages/onnxruntime/capi/libonnxruntime.so.* |
                          head -n 1)"
else
    echo "bench-shared: without onnxruntime, which can't be installed here" >&2
fi
openvino=$(ls "$root"/build/venv-bench/lib/python3*/site-packages/openvino/libs/libopenvino_c.so.* \
              2>/dev/null | head -n 1)
[ -z "$openvino" ] || peer="$peer --openvino $openvino"
# shellcheck disable=SC2086
exec python3 "$root/tests/tools/bench_shared.py" "$program" "$models" \
    $(ls -d "$root/build/topologies" "$root/build/bench/nets" 2>/dev/null) $peer "$@"
