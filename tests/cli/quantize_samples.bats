# ort-quantize: where samples come from, how many they are, and what is said of those that don't fit.
load helper

DIGITS=$MODELS_DIR/digits.onnx

# made FOLDER COUNT: inputs of the digits, an .npy each.
made() {
    mkdir -p "$1"
    python3 - "$1" "$2" <<'PY'
import random, struct, sys
for i in range(int(sys.argv[2])):
    draw = random.Random(i)
    data = b"".join(struct.pack("<f", draw.random()) for _ in range(64))
    head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 8, 8), }"
    head += b" " * (117 - len(head)) + b"\n"
    with open(f"{sys.argv[1]}/s {i:03}.npy", "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + data)
PY
}

# seen COUNT OPTION...: so many samples; their digest is left in $digest.
seen() {
    local count=$1
    shift
    run --separate-stderr ort-quantize static "$DIGITS" -v "$@" -o seen.onnx
    [ "$status" -eq 0 ] || { echo "$stderr"; return 1; }
    [[ $stderr =~ calibrating:\ ([0-9]+)\ samples,\ digest\ ([0-9a-f]{16}) ]] || { echo "$stderr"; return 1; }
    [ "${BASH_REMATCH[1]}" -eq "$count" ] || { echo "${BASH_REMATCH[1]} samples"; return 1; }
    digest=${BASH_REMATCH[2]}
}

@test "the same samples by folder, files, stream, stack and table give the same file" {
    local files=()
    made set 6
    seen 6 -i set
    local first=$digest
    mv seen.onnx first.onnx
    for f in set/*; do files+=(-i "$f"); done
    seen 6 "${files[@]}"
    [ "$digest" = "$first" ] && cmp first.onnx seen.onnx
    seen 6 -i - < <(cat set/*)
    [ "$digest" = "$first" ] && cmp first.onnx seen.onnx
    cat set/* >all.npy
    seen 6 -i all.npy --stream
    [ "$digest" = "$first" ]
    seen 6 -i <(cat set/*)
    [ "$digest" = "$first" ]
    ort-tensor set/* --stack -o stack.npz
    seen 1 -i stack.npz
    seen 6 -i stack.npz --rows 1
    [ "$digest" = "$first" ] && cmp first.onnx seen.onnx
    seen 6 -i stack.npz --dim batch=1 # the model says how many rows it takes
    [ "$digest" = "$first" ]
    seen 2 -i stack.npz --dim batch=3
    seen 6 -i image=stack.npz --rows 1
    [ "$digest" = "$first" ]
    ort-tensor stack.npz --reshape -1x64 -o table.csv
    seen 6 -i table.csv --reshape -1x1x8x8
    [ "$digest" = "$first" ] && cmp first.onnx seen.onnx
    seen 6 -i - --from csv --reshape -1x1x8x8 <table.csv
    [ "$digest" = "$first" ]
    seen 3 -i table.csv --reshape -1x1x8x8 --rows 2
    seen 2 -i table.csv --reshape -1x1x8x8 --rows 5
    seen 4 -i set --samples 4
    seen 6 -i set --samples 400
}

@test "each archive and each test data set is a sample, below folders, too" {
    made set 3
    mkdir -p zoo/test_data_set_{0,1} deep/a/b deep/c
    ort-tensor "set/s 000.npy" --name image -o zoo/test_data_set_0/input_0.pb
    ort-tensor "set/s 001.npy" --name image -o zoo/test_data_set_1/input_0.pb
    cp "$DIGITS" zoo/model.onnx
    echo '{}' >zoo/meta.json
    seen 2 -i zoo
    seen 1 -i zoo/test_data_set_0
    ort-tensor "set/s 000.npy" --name image -o deep/a/b/x.npz
    ort-tensor "set/s 001.npy" --name image -o deep/c/y.npz
    touch deep/.hidden
    seen 2 -i deep
    seen 5 -i zoo -i set
    # files that are counted from 0 are no set
    mkdir counted
    for i in 0 1 2; do cp "set/s 00$i.npy" counted/input_$i.npy; done
    seen 3 -i counted
}

@test "pictures and sound become inputs by the operations of ort-tensor" {
    mkdir pictures
    cp "$MODELS_DIR"/images/digit_*.png pictures/
    local count=$(ls pictures | wc -l)
    seen "$count" -i pictures --gray --float
    ort-tensor pictures/* --gray --float --stack -o stack.npy
    local first=$digest
    seen "$count" -i stack.npy --rows 1
    [ "$digest" = "$first" ]
    seen "$count" -i pictures --gray --resize 16 --crop 8 --mean 0.5 --std 0.5
    fails 5 "pictures/digit_[^:]*: input 'image' is uint8\[8,8,3\].*of a picture: --gray --float" \
        ort-quantize static "$DIGITS" -i pictures
    fails 5 "pictures/digit_[^:]*: --crop 9\+3\+3: the value is" \
        ort-quantize static "$DIGITS" -i pictures --crop 9+3+3
    fails 2 "--float needs -i" ort-quantize static "$DIGITS" --random 1 --float
}

@test "several inputs: pairs of folders, one for all, values" {
    python3 - "$ROOT/tests/tools" <<'PY'
import sys
sys.path.insert(0, sys.argv[1])
from fixtures import *
weights = initializer("w", [4, 4], [float(i % 7) - 3 for i in range(16)])
open("two.onnx", "wb").write(model([node("MatMul", ["a", "w"], ["p"]), node("Mul", ["p", "b"], ["y"])],
                                   [value_info("a", ["n", 4]), value_info("b", ["n", 1])],
                                   [value_info("y", ["n", 4])], [weights]))
PY
    mkdir a b
    for i in 1 2 3; do
        echo "[[1, 2, 3, $i]]" >x.json
        ort-tensor x.json -o a/$i.npy
        echo "[[$i]]" >x.json
        ort-tensor x.json -o b/$i.npy
    done
    works ort-quantize static two.onnx -i a=a -i b=b -o q.onnx
    has "3 samples"
    works ort-quantize static two.onnx -i a -i b=b -o q.onnx
    has "3 samples"
    works ort-quantize static two.onnx -i a=a -i 'b=[[2]]' -o q.onnx
    has "3 samples"
    works ort-quantize static two.onnx -i a -i b=b/1.npy --samples 2 -o q.onnx
    has "2 samples"
    printf 'a[0],a[1],a[2],a[3],b,class\n1,2,3,4,1,x\n2,3,4,5,1,y\n' >t.csv
    works ort-quantize static two.onnx -i t.csv --drop class -o q.onnx
    has "2 samples"
    works ort-quantize static two.onnx -i - --drop class -o q.onnx <t.csv
    has "2 samples"
    rm b/3.npy
    fails 5 "folder of input 'b'" ort-quantize static two.onnx -i a=a -i b=b
    cp a/1.npy a/4.npy && cp b/1.npy b/3.npy && cp b/1.npy b/4.npy && cp b/1.npy b/5.npy
    fails 5 "input 'b' holds 5 files.*4 runs" ort-quantize static two.onnx -i a=a -i b=b
    fails 5 "a/1.npy: holds no value for input 'b'" ort-quantize static two.onnx -i a
}

@test "arrays that no input is called after, and samples that aren't there, are told once by every verb" {
    PYTHONPATH=$ROOT/tests/tools python3 - <<'PY'
from fixtures import *
weights = [initializer(w, [64, 64], [float(i * k % 17) - 8.25 for i in range(4096)]) for w, k in (("w", 5), ("v", 7))]
open("two.onnx", "wb").write(model(
    [node("MatMul", ["a", "w"], ["p"]), node("MatMul", ["p", "v"], ["q"]), node("Mul", ["q", "b"], ["y"])],
    [value_info("a", ["n", 64]), value_info("b", ["n", 1]), value_info("w", [64, 64])],
    [value_info("y", ["n", 64])], weights))
PY
    python3 - <<'PY'
import json
a, b, w = [[k % 5 - 1.5 for k in range(64)]], [[2.5]], [[1.5] * 64] * 64
for name, arrays in {"right": {"a": a, "b": b}, "order": {"first": a, "second": b}, "extra": {"a": a, "b": b, "second": b},
                     "weight": {"a": a, "b": b, "w": w}, "missing": {"a": a, "second": b}}.items():
    json.dump(arrays, open(f"{name}.json", "w"))
PY
    for f in *.json; do ort-tensor $f -o ${f%.json}.npz; done
    works ort-quantize dynamic two.onnx --small -i right.npz -o q.onnx
    told() { # told COUNT TEXT COMMAND...: one warning, which holds the text; or none
        local count=$1 text=$2
        shift 2
        run --separate-stderr ort-quantize "$@" -o o.onnx
        [ "$status" -eq 0 ] || { echo "$*: $stderr"; return 1; }
        [ "$(grep -c . <<<"$stderr")" -eq "$count" ] && [[ $stderr == *"$text"* ]] || { echo "$*: '$stderr'"; return 1; }
    }
    local verb
    for verb in static calibrate "dynamic --small" "weights --method gptq" "weights --method awq"; do
        told 0 "" $verb two.onnx -i right.npz -i right.npz
        told 1 "order.npz: 'first', 'second' are no inputs of the model: they are taken for 'a', 'b', in this order" \
            $verb two.onnx -i order.npz -i order.npz
        told 1 "extra.npz: holds 'second', which is no input of the model: it is left out" $verb two.onnx -i extra.npz
        told 1 "weight.npz: holds 'w', which keeps its default" $verb two.onnx -i weight.npz
        told 1 "--samples 5: there are 2" $verb two.onnx -i right.npz -i right.npz --samples 5
        told 0 "" $verb two.onnx -i right.npz -i right.npz --samples 2
        told 0 "" $verb two.onnx -i extra.npz --samples 5 -q
        fails 5 "missing.npz: holds no value for input 'b' \('second' is no input\), -i NAME=FILE gives" \
            ort-quantize $verb two.onnx -i missing.npz -o o.onnx
    done
    run --separate-stderr ort-quantize evaluate two.onnx q.onnx -i extra.npz --samples 2
    [ "$(grep -c "left out\|there is 1" <<<"$stderr")" -eq 2 ]
    fails 1 "left out" ort-quantize evaluate two.onnx q.onnx -i extra.npz --strict -q
    told 1 "--samples 3: there are 2 in this --shard" calibrate two.onnx -i right.npz -i right.npz -i right.npz \
        --shard 1/2 --samples 3
    # one array for one input is no question; -v tells
    made set 1
    ort-tensor set/* --name pixels -o pixels.npz
    told 0 "" static "$DIGITS" -i pixels.npz
    run --separate-stderr ort-quantize static "$DIGITS" -i pixels.npz -v -o q.onnx
    [ "$(grep -c "^pixels.npz: 'pixels' is no input of the model: it is taken for 'image'$" <<<"$stderr")" -eq 1 ]
}

@test "made-up samples are as many as wanted, and other ones for each seed" {
    seen 8 --random 1
    seen 3 --random 1 --samples 3
    local first=$digest
    seen 3 --random 2 --samples 3
    [ "$digest" != "$first" ]
    seen 3 --random 1 --samples 3
    [ "$digest" = "$first" ]
}

@test "shapes differ from sample to sample" {
    made set 3
    ort-tensor "set/s 000.npy" "set/s 001.npy" --stack -o set/two.npy
    seen 4 -i set
}

@test "a sample that does not fit is told with its place, and what would help" {
    made set 2
    ort-tensor "set/s 000.npy" --cast double -o double.npy
    fails 5 "double.npy: input 'image' is double.*--cast float" \
        ort-quantize static "$DIGITS" -i set -i double.npy
    fails 4 "$DIGITS: double.npy: the arena" ort-quantize static "$DIGITS" -i double.npy --cast float --max-memory 1k
    fails 4 "standard input: double.npy: the arena" ort-quantize static - -i double.npy --cast float --max-memory 1k <"$DIGITS"
    ort-tensor "set/s 000.npy" --squeeze -o rank.npy
    fails 5 "rank.npy: input 'image' is float\[8,8\]" ort-quantize static "$DIGITS" -i rank.npy
    ort-tensor "set/s 000.npy" --reshape 1x8x8 -o rank.npy
    fails 5 "rank.npy: .*the batch lacks: --unsqueeze 0" ort-quantize static "$DIGITS" -i rank.npy
    head -c 200 "set/s 001.npy" >cut.npy
    fails 5 "cut.npy: .*72 bytes are left" ort-quantize static "$DIGITS" -i cut.npy
    fails 5 "standard input, record 2: .*72 bytes are left" \
        ort-quantize static "$DIGITS" -i - < <(cat "set/s 000.npy" cut.npy)
    : >empty.npy
    fails 5 "empty.npy: is empty" ort-quantize static "$DIGITS" -i empty.npy
    fails 5 "standard input: holds no sample" ort-quantize static "$DIGITS" -i - </dev/null
    ort-tensor set/* "set/s 000.npy" --stack -o three.npy
    fails 5 "three.npy: 3 rows for input 'image', which takes 2 at a time: leave out 1" \
        ort-quantize static "$DIGITS" -i three.npy --dim batch=2
    fails 5 "nothere.*(No such file|can't open)" ort-quantize static "$DIGITS" -i nothere
}

@test "NaN in a sample is told once" {
    made set 2
    ort-tensor "set/s 000.npy" --scale 0 -o zero.npy
    python3 - <<'PY'
data = bytearray(open("zero.npy", "rb").read())
data[-4:] = b"\0\0\xc0\x7f"
open("set/z.npy", "wb").write(data)
PY
    run --separate-stderr ort-quantize static "$DIGITS" -i set -o q.onnx
    [ "$(grep -c "1 of 3 samples hold NaN or infinity, the first is set/z.npy, input 'image'" <<<"$stderr")" -eq 1 ]
}

@test "folders with something else in them are refused by name" {
    made set 2
    mkdir mixed loop none pipe
    cp "set/s 000.npy" mixed/a.npy
    ort-tensor "set/s 000.npy" -o mixed/b.npz
    fails 5 "mixed: holds files of several kinds, mixed/a.npy \(npy\) and mixed/b.npz \(npz\)" \
        ort-quantize static "$DIGITS" -i mixed
    mv mixed/b.npz mixed/notes.txt
    fails 5 "mixed/a.npy \(npy\) and mixed/notes.txt \(no format" ort-quantize static "$DIGITS" -i mixed
    ln -s . loop/self
    fails 5 "loop/self: leads back" ort-quantize static "$DIGITS" -i loop
    ln -sf itself none/itself
    fails 5 "none/itself: can't open" ort-quantize static "$DIGITS" -i none
    rm none/itself
    fails 5 "none: holds no tensor" ort-quantize static "$DIGITS" -i none
    mkfifo pipe/p.npy
    fails 5 "pipe/p.npy: is no file" ort-quantize static "$DIGITS" -i pipe
    ln -s "../set/s 000.npy" pipe/q.npy
    rm pipe/p.npy
    seen 1 -i pipe # a link to a file is one
}

@test "a thousand samples take no more memory than ten" {
    made ten 10
    mkdir thousand
    python3 - <<'PY'
import os
for i in range(1000):
    os.link(f"ten/s {i % 10:03}.npy", f"thousand/{i:04}.npy")
PY
    /usr/bin/env python3 - "$DIGITS" <<'PY'
import os, subprocess, sys
def peak(folder):
    child = subprocess.Popen(["ort-quantize", "static", sys.argv[1], "-i", folder, "-o", "q.onnx"],
                             stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    assert status == 0
    return usage.ru_maxrss
ten, thousand = peak("ten"), peak("thousand")
assert thousand <= 1.1 * ten, (ten, thousand)
PY
}

@test "ort-run takes a folder of files as a run each" {
    made set 3
    works ort-run "$DIGITS" set --hash
    [ "${#lines[@]}" -eq 3 ]
    local folder=$output
    works ort-run "$DIGITS" -i image=set --hash
    works ort-run "$DIGITS" set/* --hash
    [ "$output" = "$folder" ]
    works ort-optimize "$DIGITS" -i set -o o.onnx
}

@test "the file tells the options and the samples that it was made with" {
    made set 2
    seen 2 -i set --observer min-max --symmetric
    works strings seen.onnx
    has 'ort.quantize.static' '--symmetric' '--observer min-max' "samples: 2, digest $digest"
    works ort-quantize static "$DIGITS" --random 7 --samples 3 -o q.onnx --json
    has '"digest"' '"made_up"'
    works strings q.onnx
    has 'samples: 3 made up by --random 7, digest'
}
