# ort-quantize: every gate passes and trips, on one model; the search that takes gates as its goal.
load helper

held_out() { # held.npy and labels.npy: the digits that the bundled model was not trained on
    python3 - "$MODELS_DIR/held_out.npz" <<'PY'
import struct, sys, zipfile

def read(data):
    length = struct.unpack("<H", data[8:10])[0]
    return eval(data[10:10 + length]), data[10 + length:]

def write(name, descr, shape, data):
    head = ("{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, shape)).encode()
    head += b" " * (63 - (len(head) + 10) % 64) + b"\n"
    open(name, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + data)

z = zipfile.ZipFile(sys.argv[1])
head, pixels = read(z.read("digits_images.npy"))
n = head["shape"][0]
write("held.npy", "<f4", (n, 1, 8, 8), struct.pack("<%df" % len(pixels), *[p / 255 for p in pixels]))
head, labels = read(z.read("digits_labels.npy"))
write("labels.npy", head["descr"], (n,), labels)
PY
}

@test "each gate: one that holds leaves a file, one that doesn't leaves none and exits with 1" {
    held_out
    local coarse="--activation-type uint4 --weight-type int4 --per-tensor --plain-weights --plain-biases --keep-sensitive 0"
    while read -r gate holds trips; do
        run --separate-stderr ort-quantize static "$MODELS_DIR/digits.onnx" -i held.npy --labels labels.npy \
            --$gate $holds -q -o q.onnx
        [ "$status" -eq 0 ] || { echo "$gate $holds: $status $stderr"; false; }
        [ -s q.onnx ]
        rm q.onnx
        run --separate-stderr ort-quantize static "$MODELS_DIR/digits.onnx" -i held.npy --labels labels.npy \
            --$gate $trips -q -o q.onnx $coarse
        [ "$status" -eq 1 ] || { echo "$gate $trips: $status $stderr"; false; }
        [[ $stderr == *"--$gate: measured"*"allowed"* ]]
        [ ! -e q.onnx ]
    done <<'GATES'
min-sqnr 20 20
min-cosine 0.99 0.9999
min-top1 0.99 0.999
max-drop 0.003 0.003
require-speedup 0.001 100000
max-size 40k 4k
GATES
}

@test "labels come from standard input or a pipe" {
    held_out
    local net=$MODELS_DIR/digits.onnx
    works ort-quantize evaluate "$net" "$net" -i held.npy --labels labels.npy
    local named=$output
    works ort-quantize evaluate "$net" "$net" -i held.npy --labels - <labels.npy
    [ "$(grep -i accuracy <<<"$output")" = "$(grep -i accuracy <<<"$named")" ]
    works ort-quantize static "$net" -i held.npy -q --max-drop 0.003 --labels <(cat labels.npy) -o q.onnx
    ort-tensor labels.npy --reshape -1x1 -o labels.csv
    mv labels.csv labels.txt # a number in each line, as other tools write them
    for list in labels.txt <(cat labels.txt); do
        works ort-quantize evaluate "$net" "$net" -i held.npy --labels "$list" --max-drop 0
        [ "$(grep -i accuracy <<<"$output")" = "$(grep -i accuracy <<<"$named")" ]
    done
    fails 5 "standard input: holds no labels" ort-quantize evaluate "$net" "$net" -i held.npy --labels - <<<'["a"]'
}

@test "--auto judges --max-drop on all labelled rows, and takes what holds it" {
    held_out
    run --separate-stderr ort-quantize static "$MODELS_DIR/digits.onnx" -i held.npy --labels labels.npy \
        --auto size --max-drop 0.003 --min-sqnr 25 --json --assignment a.json -o q.onnx
    [ "$status" -eq 0 ] || { echo "$stderr"; false; }
    python3 - "$output" <<'PY'
import json, sys
d = json.loads(sys.argv[1])
points = d["frontier"]
chosen = [p for p in points if p["chosen"]]
assert len(chosen) == 1 and chosen[0]["holds"] and chosen[0]["drop"] <= 0.003, points
assert all(p["holds"] == (p["drop"] <= 0.003 and (p["sqnr_db"] or 1e9) >= 25) for p in points), points
assert d["accuracy"]["labels"] == 359 and all(g["passed"] for g in d["gates"]), d["gates"]
PY
    run --separate-stderr ort-quantize static "$MODELS_DIR/digits.onnx" -i held.npy --labels labels.npy \
        --auto size --max-drop 0 --min-sqnr 500 -q -o none.onnx --overrides a.json
    [ "$status" -eq 2 ] # a search and its result don't go together
}

@test "float16 by overrides: weights of two bytes, casts at borders alone; and as a step of --auto" {
    echo '{"schema": "ort-overrides/1", "overrides": [{"operator": "Conv", "type": "float16"}]}' >o.json
    works ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 --overrides o.json --min-sqnr 30 -o q.onnx
    [ "$(ort-inspect q.onnx --initializers | grep -c 'float16')" -ge 2 ]
    [ "$(ort-inspect q.onnx --initializers | grep -c 'float16.*conv\|conv.*float16')" -ge 1 ]
    ort-inspect q.onnx --initializers | grep -q int8 # the Gemm
    echo '{"schema": "ort-overrides/1", "overrides": [{"value": "x", "type": "float16"}]}' >bad.json
    fails 2 'what nodes compute in' ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 --overrides bad.json
    echo '{"schema": "ort-overrides/1", "overrides": [{"node": "*", "weights": "float16"}]}' >bad.json
    fails 2 'allowed: int8' ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 --overrides bad.json
    works ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 --auto size --min-sqnr 55 --assignment a.json \
        -o auto.onnx
    has "float16"
    grep -q float16 a.json
    works ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 --overrides a.json --min-sqnr 55 -o again.onnx
    [ "$(ort-inspect auto.onnx --initializers)" = "$(ort-inspect again.onnx --initializers | sed s/again/auto/)" ]
}

@test "a reader of the report that leaves ends the tool quietly, without a file" {
    run --separate-stderr bash -c "ort-quantize static '$MODELS_DIR/digits.onnx' --random 1 -o q.onnx | true
        echo \${PIPESTATUS[0]}"
    [ "$output" -eq 141 ]
    [ -z "$(grep signal <<<"$stderr")" ]
    [ -z "$(ls)" ]
    fails 5 "standard output: can't write: No space left" \
        sh -c "ort-quantize calibrate '$MODELS_DIR/digits.onnx' --random 1 >/dev/full"
}
