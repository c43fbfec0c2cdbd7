# ort-quantize: the report of every verb, the verb evaluate, and gates that keep a file away.
load helper

held_out() { # held.npy and labels.npy: the digits that the bundled model was not trained on
    python3 - "$MODELS_DIR/held_out.npz" <<'PY'
import io, struct, sys, zipfile

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

json() { # PYTHON: over d, the report in $output
    python3 -c "
import json, sys
d = json.loads(sys.argv[1])
$1" "$output"
}

@test "small numbers that an output joins to large ones have a ratio of their own, and a gate" {
    PYTHONPATH=$ROOT/tests/tools python3 - <<'PY'
import json
from fixtures import *
def net(name, boxes, scores):
    c = [initializer("b", [], [boxes]), initializer("s", [], [scores])]
    nodes = [node("Mul", ["x", "b"], ["xb"]), node("Mul", ["y", "s"], ["ys"]),
             node("Concat", ["xb", "ys"], ["out"], attributes={"axis": 2}),
             node("Transpose", ["out"], ["turned"], attributes={"perm": [0, 2, 1]})]
    open(name, "wb").write(model(nodes, [value_info("x", [1, 50, 4]), value_info("y", [1, 50, 3])],
                                 [value_info("out", [1, 50, 7]), value_info("turned", [1, 7, 50])], c))
net("float.onnx", 200.0, 1.0)
net("codes.onnx", 200.02, 1.1)
net("even.onnx", 2.0, 1.1)
json.dump({"x": [[[(i + k) % 7 / 7 + 0.5 for k in range(4)] for i in range(50)]],
           "y": [[[(i * k) % 5 / 9 + 0.2 for k in range(3)] for i in range(50)]]}, open("x.json", "w"))
PY
    works ort-tensor x.json -o x.npz
    run --separate-stderr ort-quantize evaluate float.onnx codes.onnx -i x.npz -i x.npz --min-sqnr 40 --min-part-sqnr 19.99
    [ "$status" -eq 0 ] || { echo "$stderr"; false; }
    local small='channels 4-6 of 7 along axis'
    [[ $output =~ out:\ $small\ 2,\ [2-9][0-9.]+e?.*\ times\ smaller\ than\ the\ rest:\ SQNR\ 20.00\ dB ]] || { echo "$output"; false; }
    [[ $output =~ turned:\ $small\ 1, ]]
    fails 1 "--min-part-sqnr: measured 20(.000[0-9]*)? in 'out', allowed 20.01" \
        ort-quantize evaluate float.onnx codes.onnx -i x.npz --min-part-sqnr 20.01 -q
    run --separate-stderr ort-quantize evaluate float.onnx codes.onnx -i x.npz --json
    json '
for o, axis in zip(d["outputs"], (2, 1)):
    p = o["worst_part"]
    assert o["sqnr_db"] > 40 and abs(p["sqnr_db"] - 20) < 0.01, o
    assert p["axis"] == axis and p["channels"] == "4-6" and p["of"] == 7 and p["times_smaller"] > 100, o'
    # of one size: there are no parts, and the whole is what the gate takes
    run --separate-stderr ort-quantize evaluate even.onnx even.onnx -i x.npz --min-part-sqnr 100 --json
    [ "$status" -eq 0 ]
    json 'assert all("worst_part" not in o for o in d["outputs"]), d["outputs"]'
    ort-run float.onnx -i x.npz -o a.npz
    ort-run codes.onnx -i x.npz -o b.npz
    run --separate-stderr ort-tensor b.npz --compare a.npz --min-sqnr 40
    [ "$status" -eq 0 ]
    [[ $output == *"out: "*"; $small 2, "*"SQNR 20.00 dB"* ]] || { echo "$output"; false; }
    run --separate-stderr ort-tensor b.npz --compare a.npz --json
    json 'assert [v["worst_part"]["channels"] for v in d["records"][0]["compare"]] == ["4-6", "4-6"], d'
    fails 2 "--auto" ort-quantize static float.onnx -i x.npz --auto size --min-sqnr 10 --min-part-sqnr 10
}

@test "digits keep their answers: at most one of 359 is lost" {
    held_out
    works ort-quantize static "$MODELS_DIR/digits.onnx" -i held.npy --labels labels.npy --max-drop 0.00279 \
        --min-top1 0.99 --min-sqnr 20 --min-cosine 0.99 --max-size 40k -o q.onnx
    [ -s q.onnx ]
    run --separate-stderr ort-quantize evaluate "$MODELS_DIR/digits.onnx" q.onnx -i held.npy --labels labels.npy --json
    [ "$status" -eq 0 ]
    json '
assert d["schema"] == "ort-quantize/1" and d["verb"] == "evaluate" and not d["samples"]["made_up"]
o = d["outputs"][0]
assert o["name"] == "probabilities" and o["rows"] == 359 and o["sqnr_db"] > 20 and o["cosine"] > 0.99 and not o["exact"]
assert o["clear_rows"] <= 359 and o["clear_agreeing"] <= o["clear_rows"] and o["margin"] == 0.1
a = d["accuracy"]
assert a["labels"] == 359 and a["float_correct"] - a["quantized_correct"] <= 1, a
assert d["size"]["ratio"] < 0.29 and d["initializers"][0]["bytes"] >= d["initializers"][1]["bytes"]
assert d["latency"]["runs"] >= 7 and d["latency"]["speedup"] > 0
assert d["products"]["integer_steps"] == d["products"]["steps"] == 4, d["products"]'
}

@test "a model beside itself is exact; products that stay float are named with the reason" {
    run --separate-stderr ort-quantize evaluate "$MODELS_DIR/digits.onnx" "$MODELS_DIR/digits.onnx" --json
    [ "$status" -eq 0 ]
    json '
o = d["outputs"][0]
assert o["exact"] and o["sqnr_db"] is None and o["cosine"] == 1 and o["max_abs"] == 0 and o["top1"] == 1
assert len(d["samples"].pop("digest")) == 16
assert d["samples"] == {"count": 8, "made_up": True, "seed": "1"}, d["samples"]
assert d["products"]["integer_steps"] == 0 and all("makes codes" in n["why"] for n in d["products"]["nodes"])'
    works ort-quantize evaluate "$MODELS_DIR/digits.onnx" "$MODELS_DIR/digits.onnx"
    has "made up (--random 1)" "exact" "products  0 of 4 on integers" "float: conv1"
}

@test "a gate that says no leaves no file, and the one that was there" {
    works ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 -o q.onnx
    cp q.onnx before.onnx
    for gate in "--min-sqnr 200" "--min-cosine 1" "--require-speedup 1000000" "--max-size 1k"; do
        run --separate-stderr ort-quantize static "$MODELS_DIR/digits.onnx" --random 2 $gate -o q.onnx
        [ "$status" -eq 1 ]
        [[ $stderr == *"${gate%% *}: measured"*"allowed"* ]]
        cmp q.onnx before.onnx
    done
    run ort-quantize static "$MODELS_DIR/digits.onnx" --random 2 --min-sqnr 200 -o other.onnx
    [ "$status" -eq 1 ]
    [ "$(ls)" = "$(printf 'before.onnx\nq.onnx')" ]
}

@test "the report names the largest initializers, four of them, with -v eight" {
    ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 -o q.onnx >report
    total=$(ort-inspect q.onnx --json --initializers |
        python3 -c 'import json, sys; print(len(json.load(sys.stdin)["initializers"]))')
    [ "$(sed -n '/^initializer /,$p' report | grep -c ' [0-9,]*$')" -eq 4 ]
    grep -q "^  and $((total - 4)) smaller ones" report
    ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 -v -o q.onnx >report 2>&1
    grep -q "^  and $((total - 8)) smaller ones" report
}

@test "the model on stdout leaves the report to -v, on stderr" {
    ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 -o - >q.onnx 2>err
    [ ! -s err ]
    ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 -v -o - 2>err >again.onnx
    cmp q.onnx again.onnx
    grep -q "^latency" err
}

@test "outputs that have no place, labels that don't fit, and other misuse" {
    fails 2 "has no output" ort-quantize evaluate "$FX/pair.onnx" "$FX/chain.onnx" -i "$FX/x.npy"
    fails 2 "evaluate takes two files" ort-quantize evaluate "$FX/chain.onnx"
    fails 2 "evaluate writes no model" ort-quantize evaluate "$FX/chain.onnx" "$FX/chain.onnx" -o q.onnx
    fails 2 "makes no model" ort-quantize suggest "$FX/chain.onnx" --min-sqnr 10
    fails 5 "holds 8 labels, there are 2 rows" \
        ort-quantize evaluate "$FX/chain.onnx" "$FX/chain.onnx" -i "$FX/x.npy" --labels "$FX/labels.npy"
    fails 5 "is no class" \
        ort-quantize evaluate "$FX/chain.onnx" "$FX/chain.onnx" -i "$FX/x.npy" --labels "$FX/x.npy"
}

@test "sums that processors without VNNI may saturate are told, and avoided by default" {
    python3 -c "
import sys
sys.path.insert(0, '$ROOT/tests/tools')
from fixtures import *
w = initializer('w', [4, 3], [1, 1, 1, 1, 1, 1, 1, -1, 1, 1, 1, 1]) # every pair is at its largest
open('large.onnx', 'wb').write(model([node('MatMul', ['x', 'w'], ['out'])], [value_info('x', [2, 4])],
                                     [value_info('out', [2, 3])], [w]))"
    run --separate-stderr ort-quantize static large.onnx --random 1 --json
    [ "$status" -eq 0 ]
    json 'assert d["may_saturate_elsewhere"] == [], d'
    run --separate-stderr ort-quantize static large.onnx --random 1 --json --full-range
    [ "$status" -eq 0 ]
    json '
rows = d["may_saturate_elsewhere"]
assert len(rows) == 1 and 0.5 < rows[0]["share_of_pairs"] <= 1, rows'
    works ort-quantize static large.onnx --random 1 --full-range
    has "1 product has sums that processors without VNNI may saturate" "--reduce-range"
    fails 2 "full-range" ort-quantize static large.onnx --random 1 --full-range --reduce-range
    run --separate-stderr ort-quantize static large.onnx --random 1 --json --reduce-range
    json 'assert d["may_saturate_elsewhere"] == [], d'
}

@test "weights with zero points are uint8 by default, which no processor saturates" {
    python3 -c "
import sys
sys.path.insert(0, '$ROOT/tests/tools')
from fixtures import *
w = initializer('w', [4, 3], [1, 1, 1, 1, 1, 1, 1, -1, 1, 1, 1, 1])
open('large.onnx', 'wb').write(model([node('MatMul', ['x', 'w'], ['out'])], [value_info('x', [2, 4])],
                                     [value_info('out', [2, 3])], [w]))"
    run --separate-stderr ort-quantize static large.onnx --random 1 --json --asymmetric-weights -o u8.onnx
    json 'assert d["may_saturate_elsewhere"] == [], d'
    run --separate-stderr ort-quantize static large.onnx --random 1 --json --asymmetric-weights \
        --weight-type int8 -o s8.onnx
    json 'assert len(d["may_saturate_elsewhere"]) == 1, d'
    python3 -c "import struct; open('x.bin', 'wb').write(struct.pack('<8f', *[0.3, 0.1, 0.9, 0.7, 0.2, 0.5, 0.4, 0.8]))"
    works ort-tensor x.bin --from raw --dtype float32 --dims 2x4 -o x.npy
    ort-run u8.onnx -i x.npy -q -o a.npy # the same numbers
    ort-run s8.onnx -i x.npy -q -o b.npy
    cmp a.npy b.npy
}
