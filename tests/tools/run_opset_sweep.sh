#!/bin/sh
# Every conformance model converted to other opsets (ort_model_set_opset): each is blocked with a
# reason, or gives the recorded outputs here, passes onnx.checker and gives them on onnxruntime where
# that has the operators. What blocks is counted, and compared with onnx.version_converter. Then the
# real models of MODELS (default ../shared/models), converted and verified by ort-optimize.
#
# usage: tests/tools/run_opset_sweep.sh CONFORMANCE_PROGRAM [FILTER]
#   OPSETS   which (default: all from 28 down to 7)
#   FILTER   only tests whose name matches, and no real models
set -u
program=$1
filter=${2:-}
root=$(cd "$(dirname "$0")/../.." && pwd)
python=$root/build/venv/bin/python
models=${MODELS:-$root/../shared/models}
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0 blocked=0

count() { # count FILE: adds its line "N passed, N failed, N skipped"
    set -- $(grep -E '^[0-9]+ passed, [0-9]+ failed' "$1" | tail -n 1 | tr -c '0-9\n' ' ')
    passed=$((passed + ${1:-0})) failed=$((failed + ${2:-1}))
}

for opset in ${OPSETS:-28 27 26 25 24 23 22 21 20 19 18 17 16 15 14 13 12 11 10 9 8 7}; do
    mkdir "$scratch/$opset"
    "$program" --isa "${ORT_ISA:-scalar}" --ignore "$root/tests/onnx/ignore.txt" --list-failures \
        --timeout 300 --filter "${filter:-*}" --opset "$opset" --written "$scratch/$opset" \
        "$root/build/conformance" >"$scratch/here" 2>&1
    sed -n 's/^FAIL/not ok/p; s/^UNSUPPORTED/not ok/p' "$scratch/here" | sed "s/\$/ (opset $opset)/"
    grep '^BLOCKED' "$scratch/here" >"$scratch/blocked"
    blocked=$((blocked + $(wc -l <"$scratch/blocked")))
    sed -E 's/^BLOCKED [^:]*: //; s/^(node|function) [^(]*\(([^)]*)\): /\2: /; s/ \(and .*//' \
        "$scratch/blocked" >>"$scratch/reasons"
    count "$scratch/here"
    "$python" "$root/tests/tools/check_opsets.py" "$scratch/$opset" "$root/build/conformance" \
        "$opset" "$scratch/blocked" >"$scratch/there" 2>/dev/null
    cat "$scratch/there"
    count "$scratch/there"
    rm -r "${scratch:?}/$opset"
    [ -d "$models" ] && [ -z "$filter" ] || continue
    for model in "$models"/*/model.onnx; do
        "$root/build/bin/ort-optimize" "$model" --opset "$opset" -q -o "$scratch/out.onnx" \
            >"$scratch/log" 2>&1
        case $? in
        0) passed=$((passed + 1)) ;;
        3) blocked=$((blocked + 1)) ;;
        *) failed=$((failed + 1)); echo "not ok $model at opset $opset: $(tail -n 1 "$scratch/log")" ;;
        esac
    done
done
if [ -z "$filter" ]; then
    echo "# what blocks, and how often"
    sort "$scratch/reasons" | uniq -c | sort -rn | head -n 60 | cut -c1-150
fi
echo "# $blocked blocked"
echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
