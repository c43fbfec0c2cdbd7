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
    has "leave" "tiny: 329,184 multiply-accumulates"
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
name_romanizer_encoder ort-quantize weights
silero_vad ort-quantize dynamic
efficientnet_lite0_fp16 leave
efficientnet_lite0_int8_qdq leave
shufflenet_v2_12_int8 leave
llama_byte_2m_trained_int4_matmulnbits leave
xgb_digits_multiclass leave
EOF
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
    fails 2 "no verb suits .*: tiny" ort-quantize "$MODELS_DIR/digits.onnx" --random 1 -o q.onnx
}
