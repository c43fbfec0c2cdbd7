#!/bin/sh
# Fill the topologies of MODELS_DIR with weights into build/topologies, once (1.5 GB), and print that
# folder; nothing when there are none.
#
# usage: tests/tools/fill_topologies.sh MODELS_DIR PYTHON
#
# ONLY="PATTERN ..." fills only those that one of them takes.
set -u
models=$1
python=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
filled=$root/build/topologies
[ -f "$models/fill_weights.py" ] || exit 0

wanted() { # wanted NAME
    set -f
    for pattern in ${ONLY:-*}; do
        # shellcheck disable=SC2254
        case $1 in $pattern) set +f; return 0 ;; esac
    done
    set +f
    return 1
}

for source in "$models"/topologies/*.onnx; do
    name=$(basename "$source" .onnx)
    wanted "$name" || continue
    [ -f "$filled/$name/inputs.npz" ] && continue
    echo "filling $name" >&2
    "$python" "$models/fill_weights.py" "$filled" "$name" >/dev/null || exit 1
done
[ ! -d "$filled" ] || echo "$filled"
