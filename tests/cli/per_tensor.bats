# ort-run --compare --per-tensor: the error of every value that a float and a quantized model share.
load helper

quantized() { # q.onnx: the bundled model, made with made-up samples
    works ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 -q -o q.onnx
}

@test "values, outputs and weights, the worst first" {
    quantized
    run --separate-stderr ort-run "$MODELS_DIR/digits.onnx" --random 1 --compare q.onnx --per-tensor --json
    [ "$status" -eq 0 ]
    python3 -c '
import json, sys
d = json.loads(sys.argv[1])
rows = {v["name"]: v for v in d["values"] if "not_compared" not in v}
assert d["schema"] == "ort-run/1" and d["runs"] == 1 and d["compared_with"] == "q.onnx"
assert rows["image"]["kind"] == "input" and rows["image"]["other_name"] == "image_dq"
assert rows["r1"]["other_name"] == "r1_dq" and rows["r1"]["kind"] == "value"
assert rows["c1"]["other_name"] == "c1" and rows["conv1.weight"]["kind"] == "weight"
assert rows["probabilities"]["kind"] == "output" and rows["probabilities"]["elements"] == 10
ratios = [v["sqnr_db"] for v in d["values"] if v.get("sqnr_db") is not None]
assert ratios == sorted(ratios) and ratios[0] > 10, ratios' "$output"
    works ort-run "$MODELS_DIR/digits.onnx" --random 1 --compare q.onnx --per-tensor
    has "SQNR dB" "r1_dq" "hidden.weight"
}

@test "several runs are one sum; a model beside itself is exact" {
    run --separate-stderr ort-run "$FX/chain.onnx" "$FX/x.npy" "$FX/y.npy" --compare "$FX/chain.onnx" --per-tensor --json
    [ "$status" -eq 0 ]
    python3 -c '
import json, sys
d = json.loads(sys.argv[1])
assert d["runs"] == 2 and all(v["exact"] and v["elements"] == 12 for v in d["values"]), d' "$output"
}

@test "codes of the QOperator form by the scale that is named after the value" {
    python3 -c "
import sys
sys.path.insert(0, '$ROOT/tests/tools')
from fixtures import *
INT8 = 3
x, out = value_info('x', [2, 3]), value_info('out', [2, 3])
open('float.onnx', 'wb').write(model([node('Neg', ['x'], ['a']), node('Relu', ['a'], ['b']), node('Exp', ['b'], ['out'])],
                                     [x], [out]))
scale = initializer('a_scale', [], [0.5])
zero = field(2, INT8) + field(8, 'a_zero_point') + field(9, bytes(1))
open('codes.onnx', 'wb').write(model([node('Neg', ['x'], ['n']), node('Relu', ['n'], ['r']),
                                      node('QuantizeLinear', ['r', 'a_scale', 'a_zero_point'], ['a_quantized']),
                                      node('DequantizeLinear', ['a_quantized', 'a_scale', 'a_zero_point'], ['back']),
                                      node('Exp', ['back'], ['out'])], [x], [out], [scale, zero]))"
    run --separate-stderr ort-run float.onnx "$FX/x.npy" --compare codes.onnx --per-tensor --json
    [ "$status" -eq 0 ]
    python3 -c '
import json, sys
rows = {v["name"]: v for v in json.loads(sys.argv[1])["values"]}
assert "a" not in rows and rows["b"]["other_name"] == "a_quantized" and rows["b"]["codes"] and rows["b"]["exact"], rows' "$output"
}

@test "what is refused, and nothing in common" {
    fails 2 "needs --compare" ort-run "$FX/chain.onnx" "$FX/x.npy" --per-tensor
    fails 2 "exclude each other" ort-run "$FX/chain.onnx" "$FX/x.npy" --compare "$FX/chain.onnx" --per-tensor --rtol 1
    fails 3 "missing.onnx" ort-run "$FX/chain.onnx" "$FX/x.npy" --compare missing.onnx --per-tensor
    fails 5 "void.npy" ort-run "$FX/chain.onnx" void.npy --compare "$FX/chain.onnx" --per-tensor
}
