#!/bin/sh
# run_leaks.sh BIN: each tool, where it succeeds and where it refuses, leaves no memory behind. BIN holds
# tools built with -fsanitize=address; make check calls it.
set -u
bin=$(cd "$1" && pwd)
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
python3 "$root/tests/tools/fixtures.py" fx
digits=$root/models/digits.onnx
passed=0 failed=0
export ASAN_OPTIONS=detect_leaks=1

while read -r line; do
    case $line in '' | '#'*) continue ;; esac
    (eval "\"$bin\"/$line") >out 2>err </dev/null
    if grep -q 'Sanitizer\|runtime error' err; then
        echo "not ok $line"
        cat err
        failed=$((failed + 1))
    else
        passed=$((passed + 1))
    fi
done <<'END'
ort-run fx/add.onnx -i x=fx/x.npy -i y=fx/y.npy -o out=o.npy --outputs out
ort-run fx/add.onnx -i z=fx/x.npy
ort-run fx/chain.onnx fx/x.npy --outputs a,b -o o.npz
ort-run fx/chain.onnx fx/x.npy --outputs nope
ort-run fx/chain.onnx --random 1 --repeat 2 --json
ort-run fx/chain.onnx fx/x.npy fx/y.npy --stack -o o.npz
ort-run fx/chain.onnx fx/wide.npy
ort-run fx/pair.onnx fx/x.npy --compare fx/chain.onnx --json
ort-run fx/chain.onnx --random 1 --compare-levels
ort-run fx/counter.onnx --random 1 --carry next=state --steps 3 -o o.npz
ort-run fx/counter.onnx --random 1 --carry nope=state
ort-run fx/chain.onnx fx/x.npy --dump '*' --dump-dir d
ort-run fx/chain.onnx fx/x.npy --disable nonsense
ort-run fx/unknown.onnx
ort-run --nope
ort-optimize "$digits" -o a.onnx --pack
ort-optimize "$digits" -o a.onnx --external-data --strip docs,names --disable gelu,mish --json
ort-optimize "$digits" --fp16 --keep-float Gemm,Relu -v
ort-optimize fx/large.onnx --fp16
ort-optimize fx/column.onnx --make-dynamic x --bisect
ort-optimize fx/blocked.onnx --opset 9
ort-optimize fx/spelled.onnx --opset 9 --bisect --tolerance 0
ort-optimize fx/chain.onnx -i fx/wide.npy
ort-optimize fx/newer_calls.onnx
ort-optimize fx/nan.onnx --strict
ort-optimize "$digits" --passes nope
ort-optimize "$digits" -o nodir/x.onnx
ort-optimize --list-passes --json
ort-inspect "$digits" --nodes --json
ort-inspect "$digits" --extract image:nope
ort-inspect fx/unknown.onnx --ops
ort-inspect "$digits" --diff a.onnx
ort-inspect "$digits" --svg
ort-profile "$digits" --random 1 --repeat 2 --json
ort-profile "$digits" -i nope.npy
ort-tensor fx/xy.npz --select x -o y.npy
ort-tensor fx/x.npy --compare fx/wide.npy
ort-tensor fx/cut.npy
ort-tensor fx/x.npy fx/y.npy --stack -o s.npy
END
echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
