#!/bin/sh
# run_hostile.sh BIN: the models and files of hostile_models.py through tools built with sanitizers, on
# every kernel tier of the machine: an exit status of 0 to 5 and nothing that a sanitizer says.
set -u
bin=$(cd "$1" && pwd)
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 "$root/tests/tools/hostile_models.py" "$work/h" || exit 1
cd "$work/h" || exit 1
export ASAN_OPTIONS=detect_leaks=0
passed=0 failed=0

try() { # try COMMAND...
    timeout 60 "$bin/$@" >../said 2>&1 </dev/null
    status=$?
    if [ $status -gt 5 ] || grep -q 'Sanitizer\|runtime error' ../said; then
        echo "not ok $* (status $status)"
        head -n 20 ../said
        failed=$((failed + 1))
    else
        passed=$((passed + 1))
    fi
}

for tier in scalar avx2 avx512 vnni amx; do
    "$bin/ort-run" --isa $tier --settings >/dev/null 2>&1 || continue
    for model in *.onnx; do
        for level in 0 1 3; do
            try ort-run "$model" --random 1 --hash --isa $tier --level $level --max-memory 4G
        done
        case $model in
        none_range_run*) try ort-run "$model" -i e=none.npy -i five=five.npy --hash --isa $tier ;;
        none_clip_run* | none_dropout_run*) try ort-run "$model" -i e_f=none_f.npy --hash --isa $tier ;;
        none_qconv_run*)
            try ort-run "$model" -i scale=one.npy -i e_z=none_z.npy --hash --isa $tier ;;
        none_*_run*) try ort-run "$model" -i e=none.npy --hash --isa $tier ;;
        tfidf*) try ort-run "$model" -i x=tokens.npy --hash --isa $tier ;;
        esac
    done
done
for model in *.onnx; do
    try ort-inspect "$model" --check
    try ort-inspect "$model" --svg
    try ort-optimize -q "$model" -o ../o.onnx --timeout 10 --max-memory 4G
done
for file in *.npy *.wav *.bmp *.safetensors; do
    try ort-tensor "$file" --print
done
for place in +9223372036854775807+9223372036854775807 +-1+-1 +1073741824+0; do
    try ort-tensor x.npy --crop 3x3$place --print
    try ort-tensor x.npy --pad 3x3$place --print
done
for size in 1 9223372036854775807; do
    try ort-tensor four.npy --chunk $size --context 9223372036854775807 --print
    try ort-tensor four.npy --chunk $size --hop 9223372036854775807 --print
done
try ort-tensor --from raw --dtype int4 --dims 9223372036854775807 x.npy --print
echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
