# ort-optimize --opset: models of other versions of ai.onnx, what blocks them, functions.
load helper

# imports FILE: "13" or "13 IR 7"
version_of() {
    ort-inspect "$1" --json | python3 -c '
import json, sys
j = json.load(sys.stdin)
print([o["version"] for o in j["opsets"] if o["domain"] == "ai.onnx"][0], "IR", j["ir_version"])'
}

@test "--opset up and down again: the same results, the IR version that goes with it" {
    works ort-optimize "$MODELS_DIR/digits.onnx" --opset 28 -o up.onnx
    has "verified: "
    [ "$(version_of up.onnx)" = "28 IR 14" ]
    works ort-optimize up.onnx --opset 13 -o down.onnx
    has "verified: "
    [ "$(version_of down.onnx)" = "13 IR 7" ]
    works ort-run "$MODELS_DIR/digits.onnx" --random 1 --compare down.onnx
    works ort-optimize down.onnx --opset 7 --level 0 -o old.onnx
    has "verified: "
    [ "$(version_of old.onnx)" = "7 IR 4" ]
}

@test "--opset of the model's own version changes nothing but what passes do" {
    works ort-optimize "$FX/spelled.onnx" --level 0 --opset 23 -q -o same.onnx
    works ort-inspect "$FX/spelled.onnx" --diff same.onnx
}

@test "newer operators are spelled in older ones" {
    works ort-optimize "$FX/spelled.onnx" --opset 16 --level 0 -o spelled.onnx
    has "verified: "
    run ort-inspect spelled.onnx --nodes
    [[ $output != *LayerNormalization* && $output != *Gelu* && $output != *RMSNorm* ]]
    has Erf ReduceMean
}

@test "all blockers are listed, with reasons and the nearest opset, and no file is written" {
    fails 3 "node 'xor' .BitwiseXor.: the operator isn't there before opset 18" \
        ort-optimize "$FX/blocked.onnx" --opset 9 -o out.onnx
    [[ $stderr == *"node 'cut' (Slice): 'starts' is computed, and was an attribute before: needs opset 10"* ]]
    [[ $stderr == *"node 'grid' (GridSample): the operator isn't there before opset 16: needs opset 16"* ]]
    [[ $stderr == *"node 'xor' (BitwiseXor): the operator isn't there before opset 18: needs opset 18"* ]]
    [[ $stderr == *"opset 9 is out of reach (4 blockers), opset 18 isn't"* ]]
    works ort-optimize "$FX/blocked.onnx" --opset 18 -q -o out.onnx
}

@test "bodies of control flow are converted" {
    works ort-optimize "$FX/branches.onnx" --opset 12 --level 0 -o out.onnx
    has "verified: "
    run ort-inspect out.onnx --nodes --json
    [[ $output == *Squeeze* ]]
    [ "$(version_of out.onnx)" = "12 IR 7" ]
}

@test "functions are expanded, or kept where nothing in them changes" {
    works ort-optimize "$FX/calls.onnx" --opset 18 -q -o expanded.onnx
    run ort-inspect expanded.onnx --functions
    [[ $output != *twice* ]]
    works ort-optimize "$FX/calls.onnx" --opset 21 --functions keep -q -o kept.onnx
    run ort-inspect kept.onnx --functions
    has twice
    works ort-run "$FX/calls.onnx" --random 1 --compare kept.onnx
    fails 3 "function 'total' is kept as it is, and operator ReduceSum in it changes with opset 13" \
        ort-optimize "$FX/calls.onnx" --opset 12 --functions keep -o out.onnx
    works ort-optimize "$FX/calls.onnx" --opset 12 -q -o out.onnx
}

@test "functions of another version than the model's are rewritten for it, or stay" {
    works ort-optimize "$FX/elder_calls.onnx" -o expanded.onnx
    has "verified: "
    run ort-inspect expanded.onnx --functions
    [[ $output != *twice* ]]
    [ "$(version_of expanded.onnx)" = "17 IR 8" ]
    works ort-optimize expanded.onnx -q -o again.onnx
    cmp expanded.onnx again.onnx
    run ort-optimize "$FX/newer_calls.onnx" -o kept.onnx
    [ "$status" = 0 ]
    has "functions stay: node"
    has "(BitwiseNot)"
    has "needs opset 18"
    run ort-inspect kept.onnx --functions
    has twice
    works ort-run "$FX/newer_calls.onnx" --random 1 --compare kept.onnx
}

@test "--opset refuses what is no version" {
    fails 2 "opset 6 is none of 7 to 28" ort-optimize "$MODELS_DIR/digits.onnx" --opset 6 -o x.onnx
    fails 2 "opset 29 is none of 7 to 28" ort-optimize "$MODELS_DIR/digits.onnx" --opset 29
    fails 2 "opset: 'ten' is not a whole number" ort-optimize "$MODELS_DIR/digits.onnx" --opset ten
}

@test "--opset in a pipe, and in the JSON report" {
    ort-optimize - --opset 21 -o - <"$MODELS_DIR/digits.onnx" | ort-inspect - --check
    works ort-optimize "$MODELS_DIR/digits.onnx" --opset 21 --json
    [ "$(echo "$output" | python3 -c 'import json, sys; print(json.load(sys.stdin)["opset"])')" = 21 ]
}

@test "--bisect says when it is the conversion that differs" {
    fails 1 "first wrong after pass opset" \
        ort-optimize "$FX/spelled.onnx" --opset 16 --tolerance 0 --bisect -o out.onnx
}
