# ort-run --compare and --compare-levels: two models, or levels of one, on the same inputs.
load helper

@test "names of temporaries don't matter: matched by structure" {
    works ort-run "$FX/chain.onnx" "$FX/x.npy" --compare "$FX/renamed.onnx" --rtol 0
    has "3 values agree; largest difference 0"
    run --separate-stderr ort-run "$FX/chain.onnx" "$FX/x.npy" --compare "$FX/renamed.onnx" -v
    [[ $stderr == *"3 values matched, 2 of them by structure"* ]]
}

@test "the first value that differs, with its node, and exit status 1" {
    run --separate-stderr ort-run "$FX/chain.onnx" "$FX/x.npy" --compare "$FX/other.onnx"
    [ "$status" -eq 1 ] && [ -z "$stderr" ]
    has "first difference in output 'out' of node 'exp_out' (Exp)"
    run --separate-stderr ort-run "$FX/chain.onnx" "$FX/x.npy" --compare "$FX/shifted.onnx" --json
    [ "$status" -eq 1 ]
    has '"value": "b"' '"other_value": "b"' '"is_output": false'
}

@test "other weights under other names: the node that reads them is named" {
    run --separate-stderr ort-run "$FX/scaled.onnx" "$FX/y.npy" --compare "$FX/rescaled.onnx"
    [ "$status" -eq 1 ] && [ -z "$stderr" ]
    has "first difference in 'a', there 'q', of node 'scale' (Mul)"
}

@test "an output that the other model lacks is a difference" {
    run --separate-stderr ort-run "$FX/pair.onnx" "$FX/x.npy" --compare "$FX/chain.onnx"
    [ "$status" -eq 1 ] && [ -z "$stderr" ]
    has "first difference in output 'extra' of node 'sin_extra' (Sin): the other model has no such output"
    works ort-run "$FX/chain.onnx" "$FX/x.npy" --compare "$FX/pair.onnx"
}

@test "levels of one model" {
    works ort-run "$MODELS_DIR/digits.onnx" --random 1 --compare-levels
    has "ok    level 1" "ok    level 2" "ok    level 3"
    works ort-run "$MODELS_DIR/digits.onnx" --random 1 --compare-levels --level 1
    [[ $output != *"level 2"* ]]
}

@test "several samples, one comparison each" {
    works ort-run "$FX/chain.onnx" "$FX/x.npy" "$FX/y.npy" --compare "$FX/renamed.onnx" --json
    has '"run": 0' '"run": 1'
}

@test "a model and what ort-optimize made of it" {
    works ort-optimize "$MODELS_DIR/digits.onnx" -q -o fast.onnx
    works ort-run "$MODELS_DIR/digits.onnx" --random 1 --compare fast.onnx
}

@test "what it refuses" {
    fails 2 "exclude each other" ort-run "$FX/add.onnx" --compare "$FX/add.onnx" --time
    fails 2 "exclude each other" \
        ort-run "$FX/chain.onnx" "$FX/x.npy" --compare "$FX/renamed.onnx" --count x
    fails 2 "exclude each other" \
        ort-run "$FX/chain.onnx" "$FX/x.npy" --compare-levels --count x
    fails 2 "exclude each other" \
        ort-run "$FX/chain.onnx" "$FX/x.npy" --compare-levels --format npy
    fails 2 "exclude each other" ort-run "$FX/chain.onnx" --compare x.onnx --compare-levels
    fails 2 "--compare and -o exclude each other" ort-run "$FX/chain.onnx" "$FX/x.npy" --compare x.onnx -o y.npy
    fails 2 "--compare-levels and --level 0 exclude each other" ort-run "$FX/chain.onnx" --compare-levels --level 0
    fails 2 "an input 'y' that the first has not" \
        ort-run "$FX/chain.onnx" "$FX/x.npy" --compare "$FX/add.onnx"
    fails 2 "input 'x' is missing" ort-run "$FX/chain.onnx" --compare "$FX/renamed.onnx"
    fails 3 "missing.onnx" ort-run "$FX/chain.onnx" "$FX/x.npy" --compare missing.onnx
}
