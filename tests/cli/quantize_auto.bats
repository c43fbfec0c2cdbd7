# ort-quantize: which verb suits a model, which nodes cost how much, which codes hold a gate.
load helper

real() {
    [ -d "$REAL/$1" ] || skip "no real models at $REAL"
    for model in "$REAL/$1"/*.onnx; do break; done
}

@test "suggest says a command and why, and where a model is to stay" {
    works ort-quantize suggest "$MODELS_DIR/upscale.onnx"
    has "ort-quantize static $MODELS_DIR/upscale.onnx -i SAMPLES -o OUTPUT" "convolutions are 100 %"
    works ort-quantize suggest "$MODELS_DIR/digits_trees.onnx"
    has "leave" "trees compare"
    works ort-quantize suggest "$MODELS_DIR/digits.onnx"
    has "ort-quantize static $MODELS_DIR/digits.onnx -i SAMPLES -o OUTPUT"
    ort-inspect "$MODELS_DIR/digits.onnx" --extract f:probabilities -o tail.onnx
    works ort-quantize suggest tail.onnx
    has "leave tail.onnx" "tiny: 25,056 multiply-accumulates"
    fails 2 "'suggest' writes no model" ort-quantize suggest "$MODELS_DIR/digits.onnx" -o q.onnx
}

@test "suggest as JSON, from a pipe too" {
    ort-quantize suggest - --json <"$MODELS_DIR/upscale.onnx" >s.json
    python3 - <<'PY'
import json
s = json.load(open("s.json"))
assert s["schema"] == "ort-quantize/1" and s["verb"] == "suggest", s
assert s["suggested"] == "static" and len(s["reasons"]) >= 1, s
assert s["facts"]["work"]["convolution"]["macs"] == 9576, s
PY
}

@test "suggest of real models: convolutions, encoders, decoders, LSTM, GRU, codes, half floats" {
    while read -r name verb; do
        real "$name"
        run ort-quantize suggest "$model"
        [[ $output == *"$verb "* ]] || { echo "$name: $output"; return 1; }
    done <<'EOF'
efficientnet_lite0 ort-quantize static
ppocrv4_rec ort-quantize static
llama_byte_2m_trained ort-quantize weights
vttrack_vit ort-quantize dynamic
byte_sb_bidi_lstm ort-quantize dynamic
name_romanizer_encoder ort-quantize static
silero_vad ort-quantize static
ort_tiny_gpt2_past leave
tfbert_qa leave
efficientnet_lite0_fp16 leave
efficientnet_lite0_int8_qdq leave
shufflenet_v2_12_int8 leave
llama_byte_2m_trained_int4_matmulnbits leave
xgb_digits_multiclass leave
EOF
}

@test "a model that was optimized first: suggest says what static refuses, and the order" {
    python3 - "$ROOT/tests/tools" <<'PY'
import sys
sys.path.insert(0, sys.argv[1])
from fixtures import *
convs = [node("FusedConv", [f"x{i}", f"w{i}"], [f"x{i + 1}"], domain="com.microsoft", attributes={"activation": "Relu"})
         for i in range(2)]
open("fused.onnx", "wb").write(model(
    convs, [value_info("x0", [1, 32, 64, 64])], [value_info("x2", [1, 32, 60, 60])],
    [initializer(f"w{i}", [32, 32, 3, 3], [(k * 37 % 101 - 50) / 2000 for k in range(9216)]) for i in range(2)],
    domains=("com.microsoft",)))
PY
    works ort-quantize suggest fused.onnx
    has "ort-quantize static" "2 of its products were fused by an optimizer, which static refuses: quantize the model before that"
    fails 3 "quantize before that .ort-optimize --level 1" ort-quantize static fused.onnx --random 1 -o q.onnx
    [ ! -e q.onnx ]
}

@test "without a verb the suggested one is taken, and told; -q silences it" {
    run --separate-stderr ort-quantize "$MODELS_DIR/upscale.onnx" --random 1 -o a.onnx
    [ "$status" -eq 0 ]
    [[ $stderr == "ort-quantize: static, as no verb is given: convolutions are"* ]]
    works ort-quantize static "$MODELS_DIR/upscale.onnx" --random 1 -o b.onnx
    cmp a.onnx b.onnx
    ort-quantize - -q --random 1 -o - <"$MODELS_DIR/upscale.onnx" >c.onnx 2>err.txt
    [ ! -s err.txt ]
    cmp a.onnx c.onnx
    ort-inspect "$MODELS_DIR/digits.onnx" --extract f:probabilities -o tail.onnx
    fails 2 "no verb suits tail.onnx: tiny" ort-quantize tail.onnx --random 1 -o q.onnx
}

# Three layers; the second reads a number 400 times as large as those beside it, and makes little of
# it, so that codes which hold it hold nothing of the others.
planted() {
    python3 - "$ROOT" <<'PY'
import pathlib, random, sys
sys.path.insert(0, sys.argv[1] + "/tests/tools")
import fixtures as f
random.seed(3)
N = 16
def matrix(scale):
    return [[random.gauss(0, 1) * scale(i, j) / 4 for j in range(N)] for i in range(N)]
def flat(m):
    return [v for row in m for v in row]
w1 = flat(matrix(lambda i, j: 400 if j == 0 else 1))
w2 = flat(matrix(lambda i, j: 1 / 400 if i == 0 else 1))
w3 = flat(matrix(lambda i, j: 1))
nodes = [f.node("MatMul", ["x", "w1"], ["a"], "fc1"), f.node("Relu", ["a"], ["b"], "r1"),
         f.node("MatMul", ["b", "w2"], ["c"], "fc2"), f.node("Relu", ["c"], ["d"], "r2"),
         f.node("MatMul", ["d", "w3"], ["y"], "fc3")]
weights = [f.initializer(n, [N, N], v) for n, v in (("w1", w1), ("w2", w2), ("w3", w3))]
pathlib.Path("planted.onnx").write_bytes(
    f.model(nodes, [f.value_info("x", [32, N])], [f.value_info("y", [32, N])], weights))
PY
}

@test "a planted outlier layer is the first row of --sensitivity" {
    planted
    works ort-quantize static planted.onnx --random 1 --sensitivity
    [ -z "$(ls -A | grep -v planted.onnx)" ]
    mapfile -t rows <<<"$output"
    [[ ${rows[0]} == "# node"* ]]
    [[ ${rows[1]} == fc2$'\t'MatMul$'\t'* ]]
    [ "${#rows[@]}" -eq 4 ]
    works ort-quantize static planted.onnx --random 1 --sensitivity --min-sqnr 30
    has "# --min-sqnr 30 holds where the first 1 stay float" "#fc1" "#fc3"
    ort-quantize static planted.onnx --random 1 --sensitivity --json >s.json
    python3 - <<'PY'
import json
s = json.load(open("s.json"))
rows = s["sensitivity"]
assert [r["node"] for r in rows][0] == "fc2" and len(rows) == 3, rows
assert rows[0]["alone_db"] < 25 < 30 < rows[1]["cumulative_db"], rows
assert rows[0]["cumulative_db"] <= rows[0]["alone_db"] + 1, rows
PY
    fails 2 "--sensitivity and -o exclude" ort-quantize static planted.onnx --random 1 --sensitivity -o q.onnx
}

@test "what --sensitivity lists for a gate lifts the model over it through --exclude-from" {
    planted
    fails 1 "--min-sqnr" ort-quantize static planted.onnx --random 1 --min-sqnr 30 --observer mse --keep-sensitive 0 -q -o q.onnx
    ort-quantize static planted.onnx --random 1 --sensitivity --min-sqnr 30 >stay.txt
    works ort-quantize static planted.onnx --random 1 --min-sqnr 30 --exclude-from stay.txt -o q.onnx
    [ -s q.onnx ]
    has "2 of 3 on integers"
}

@test "--sensitivity is the same for every tier and number of threads" {
    works ort-quantize static "$MODELS_DIR/upscale.onnx" --random 1 --sensitivity
    printf '%s' "$output" >a.txt
    works ort-quantize static "$MODELS_DIR/upscale.onnx" --random 1 --sensitivity --isa scalar --threads 1
    printf '%s' "$output" >b.txt
    cmp a.txt b.txt
}

@test "--auto finds codes that hold a gate which int8 does not, and says what else there was" {
    planted
    fails 1 "--min-sqnr" ort-quantize static planted.onnx --random 1 --min-sqnr 30 --observer mse --keep-sensitive 0 -q -o q.onnx
    for goal in latency size; do
        works ort-quantize static planted.onnx --random 1 --auto $goal --min-sqnr 30 -o $goal.onnx \
            --assignment $goal.json --plot $goal.svg
        has "* chosen" "3 float" "3 int8"
        python3 - $goal <<'PY'
import json, sys
import xml.etree.ElementTree as xml
goal = sys.argv[1]
a = json.load(open(goal + ".json"))
assert a["schema"] == "ort-overrides/1", a
if goal == "size":
    assert [r for r in a["overrides"] if r["node"] == "fc2" and
            (r.get("type") in ("float", "float16", "uint16"))], a
circles = [e for e in xml.parse(goal + ".svg").iter() if e.tag.endswith("circle")]
assert len(circles) >= 2, circles
PY
    done
    # what was found is what its file makes
    works ort-quantize static planted.onnx --random 1 --overrides size.json -o again.onnx
    python3 - <<'PY'
import re
a, b = (open(p, "rb").read() for p in ("size.onnx", "again.onnx"))
end = lambda d: d.index(b"ort.quantize.") # the stamp, whose options differ
cut = lambda d: d[:d.rindex(b"r", 0, end(d))]
assert cut(a) == cut(b)
PY
    [ "$(stat -c %s size.onnx)" -le "$(stat -c %s latency.onnx)" ]
}

@test "--auto as JSON, and where nothing holds" {
    planted
    ort-quantize static planted.onnx --random 1 --auto size --min-sqnr 30 --json >a.json
    python3 - <<'PY'
import json
a = json.load(open("a.json"))
chosen = [p for p in a["frontier"] if p["chosen"]]
assert len(chosen) == 1 and chosen[0]["holds"], a["frontier"]
assert chosen[0]["written_bytes"] == min(p["written_bytes"] for p in a["frontier"] if p["holds"])
PY
    fails 2 "needs" ort-quantize static planted.onnx --random 1 --auto size -o q.onnx
}
