#!/bin/sh
# Have onnxruntime's own tools write their files into build/parity (once; minutes, and gigabytes with
# the topologies, where build/topologies holds them), run them here and compare.
#
# usage: tests/tools/run_parity.sh PROGRAM MODELS_DIR [OPTION...]   (options of models --parity)
set -u
program=$1
models=$2
shift 2
root=$(cd "$(dirname "$0")/../.." && pwd)
if [ ! -d "$models" ]; then
    exec "$program" --parity "$models"
fi
if ! "$root/tests/tools/setup_venv.sh" --parity; then
    echo "parity: onnxruntime can't be installed here"
    strict=0
    [ "${CI:-}" = true ] && strict=1
    echo "0 passed, $strict failed, $((1 - strict)) skipped"
    exit $strict
fi
topologies=
[ -d "$root/build/topologies" ] && topologies=$root/build/topologies
[ -n "$topologies" ] || echo "parity: build/topologies is not there (make bench fills it): left out"
# shellcheck disable=SC2086
ORT_DISABLE_TELEMETRY=1 nice "$root/build/venv-parity/bin/python" \
    "$root/tests/tools/make_parity.py" --output "$root/build/parity" "$models" $topologies || exit 1
exec "$program" --parity "$@" "$root/build/parity"
