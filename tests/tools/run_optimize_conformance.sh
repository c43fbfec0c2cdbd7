#!/bin/sh
# Every conformance model and every real model of MODELS (default ../shared/models) after levels 1
# and 2 of the optimizer, and with --contrib. Of each written file:
#
#   here          it passes its test, or is verified against the original
#   properties    same bytes for two threads and for its own output, not larger, names, metadata and
#                 unknown fields kept (check_properties.py)
#   onnxruntime   passes onnx.checker and computes the same there, where that runs the original
#
# First the patterns that exporters write, each by itself (check_forms.py), and operators between
# Transposes (check_transposes.py).
#
# usage: tests/tools/run_optimize_conformance.sh CONFORMANCE_PROGRAM
set -u
program=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
python=$root/build/venv/bin/python
tools=$root/tests/tools
models=${MODELS:-$root/../shared/models}
written=$(mktemp -d) || exit 1
trap 'rm -rf "$written"' EXIT
passed=0 failed=0 skipped=0

count() { # count OUTPUT: show it, add its last line "N passed, N failed, N skipped"
    cat "$1"
    set -- $(tail -n 1 "$1" | tr -c '0-9\n' ' ')
    passed=$((passed + ${1:-0})) failed=$((failed + ${2:-1})) skipped=$((skipped + ${3:-0}))
}

both() { # both FOLDER OPTION...: properties, then onnxruntime
    folder=$1
    shift
    rm -rf "$written/files"
    mkdir "$written/files"
    echo "# properties of $folder $*"
    "$python" "$tools/check_properties.py" "$written/files" "$folder" "$@" >"$written/out"
    count "$written/out"
    echo "# onnxruntime on $folder $*"
    "$python" "$tools/check_written.py" "$written/files" "$folder" >"$written/out" 2>/dev/null
    count "$written/out"
}

verify() { # verify OPTION...: the real models, by ort-optimize itself
    echo "# verified $*"
    ok=0 bad=0
    for model in "$models"/*/model.onnx; do
        if "$root/build/bin/ort-optimize" "$model" "$@" -q -o "$written/verified.onnx"; then
            ok=$((ok + 1))
        else
            echo "not ok $(basename "$(dirname "$model")"): ort-optimize"
            bad=$((bad + 1))
        fi
    done >"$written/out" 2>&1
    echo "$ok passed, $bad failed, 0 skipped" >>"$written/out"
    count "$written/out"
}

echo "# forms"
"$python" "$tools/check_forms.py" >"$written/out"
count "$written/out"
echo "# transposes"
"$python" "$tools/check_transposes.py" >"$written/out"
count "$written/out"

for options in "--level 1" "--level 2" "--level 2 --contrib"; do
    rm -rf "$written/here"
    mkdir "$written/here"
    echo "# here $options"
    # shellcheck disable=SC2086
    set -- $options
    level=$2
    contrib=${3:-}
    # shellcheck disable=SC2086
    "$program" --isa "${ORT_ISA:-scalar}" --ignore "$root/tests/onnx/ignore.txt" --list-failures \
        --optimize "$level" $contrib --written "$written/here" "$root/build/conformance" |
        grep '^FAIL\|^UNSUPPORTED\|passed, ' >"$written/out"
    count "$written/out"
    both "$root/build/conformance" "$@"
    [ -d "$models" ] || continue
    verify "$@"
    both "$models" "$@"
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
