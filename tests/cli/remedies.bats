# What is wrong is said once, with what to do about it.
load helper

tensor() { # tensor NAME DTYPE DIMS: zeros
    python3 -c '
import json, math, sys
name, dtype, dims = sys.argv[1:]
shape = [int(d) for d in dims.split("x")]
print(json.dumps({"v": {"dtype": dtype, "shape": shape, "data": [0] * math.prod(shape)}}))' \
        "$@" >"$1.json"
    ort-tensor "$1.json" -o "$1.npy"
}

@test "an input that misses the model is answered with what to do" {
    local digits=$MODELS_DIR/digits.onnx
    tensor double double 1x1x8x8
    fails 5 "'image' is double\[1,1,8,8\], the model wants float\[batch,1,8,8\]; ort-tensor --cast float$" \
        ort-run "$digits" double.npy
    ort-tensor double.npy --cast float -o cast.npy
    works ort-run "$digits" cast.npy --hash
    tensor flat float 1x8x8
    fails 5 "is float\[1,8,8\], the model wants .*; the batch lacks: ort-tensor --unsqueeze 0$" \
        ort-run "$digits" flat.npy
    ort-tensor flat.npy --unsqueeze 0 -o batch.npy
    works ort-run "$digits" batch.npy --hash
    tensor last float 1x8x8x1
    fails 5 "axis 1 is 8, not 1; channels are last: ort-tensor --layout nchw$" ort-run "$digits" last.npy
    tensor image float 8x8x3
    fails 5 "an image as read: ort-tensor --layout nchw$" ort-run "$MODELS_DIR/upscale.onnx" image.npy
    ort-tensor image.npy --layout nchw -o first.npy
    works ort-run "$MODELS_DIR/upscale.onnx" first.npy --hash
    tensor bytes uint8 1x1x8x8
    fails 5 "; ort-tensor --scale 1/255 makes bytes 0 to 1, --cast float keeps 0 to 255$" \
        ort-run "$digits" bytes.npy
    fails 2 "'image' is missing; .*; -i image=FILE gives one, --random 1 makes one up$" \
        ort-run "$digits"
}

@test "a second model is answered with the option that takes it" {
    fails 2 "one MODEL at a time; -o out.onnx writes" ort-optimize "$MODELS_DIR/digits.onnx" out.onnx
    fails 2 "one argument too many; --diff compares two models" \
        ort-inspect "$MODELS_DIR/digits.onnx" "$MODELS_DIR/digits.onnx"
}

@test "output that can't be written is one line" {
    local command
    for command in "ort-tensor $FX/x.npy --print" "ort-inspect $MODELS_DIR/digits.onnx" \
        "ort-run $MODELS_DIR/digits.onnx --random 1 -o -" "ort-optimize $MODELS_DIR/digits.onnx -o -"; do
        run --separate-stderr bash -c "$command >/dev/full"
        [ "$status" -eq 5 ]
        [ "${#stderr_lines[@]}" -eq 1 ] || { echo "$command: $stderr"; return 1; }
        [[ $stderr == *"standard output: "*"No space left on device" ]] || { echo "$stderr"; return 1; }
    done
}

@test "standard input has one name" {
    printf xx >bad
    run --separate-stderr bash -c 'ort-run - --random 1 <bad'
    [[ $stderr == "ort-run: standard input: has no ir_version"* ]]
    run --separate-stderr bash -c 'ort-inspect - <bad'
    [[ $stderr == "ort-inspect: standard input: has no ir_version"* ]]
}

@test "a bad variable is blamed by its name" {
    fails 2 "^ort-run: ORT_THREADS: 'foo' is not a whole number" \
        env ORT_THREADS=foo ort-run "$MODELS_DIR/digits.onnx" --random 1
    fails 2 "^ort-run: ORT_PROVIDER: provider 'foo' is unknown; this build has: cpu" \
        env ORT_PROVIDER=foo ort-run "$MODELS_DIR/digits.onnx" --random 1
    fails 2 "^ort-run: --provider: provider 'foo' is unknown; this build has: cpu" \
        ort-run --provider cpu,foo "$MODELS_DIR/digits.onnx" --random 1
    fails 2 "^ort-run: ORT_LOG: 'bogus' is none of warning, info, debug" \
        env ORT_LOG=bogus ort-run "$MODELS_DIR/digits.onnx" --random 1
    fails 2 "^ort-run: --threads: 'foo'" ort-run "$MODELS_DIR/digits.onnx" --random 1 --threads foo
}

@test "opset 0 and an empty operator are one finding each" {
    python3 - "$MODELS_DIR/digits.onnx" <<'PY'
import sys
sys.path.insert(0, sys.argv[1].rpartition("/models/")[0] + "/tests/tools")
import fixtures as f
def write(name, op, opset):
    open(name, "wb").write(f.model([f.node(op, ["x"], ["y"], name="n")], [f.value_info("x", [1])],
                                   [f.value_info("y", [1])], opset=opset))
write("zero.onnx", "Relu", 0)
write("nameless.onnx", "", 13)
PY
    run --separate-stderr ort-inspect --check zero.onnx
    [ "$status" -ne 0 ]
    [ "$(grep -c . <<<"$output$stderr")" -eq 1 ] || { echo "$output$stderr"; return 1; }
    [[ $output$stderr == *"opset 'ai.onnx' has version 0"* ]]
    run --separate-stderr ort-run nameless.onnx --random 1
    [ "$status" -eq 3 ]
    [[ $stderr == *"node 'n'"*": has no operator: its op_type is empty"* ]]
}

@test "a name that no input has is answered with the nearest" {
    local why="the model has no input 'imgae' \(did you mean 'image'\?\); its inputs are 'image'"
    fails 2 "$why" ort-run "$MODELS_DIR/digits.onnx" -i "imgae=$FX/x.npy"
    fails 2 "$why" ort-profile "$MODELS_DIR/digits.onnx" -i "imgae=$FX/x.npy"
}

@test "a recurrence and a verification say what to do about an input, too" {
    tensor double double 2x3
    fails 5 "'x' is double\[2,3\], the model wants float\[2,3\]; ort-tensor --cast float$" \
        ort-run "$FX/counter.onnx" --carry next=state --steps 2 -i x=double.npy -i "state=$FX/x.npy" -o y.npy
    tensor flat float 1x8x8
    fails 5 "is float\[1,8,8\], the model wants .*; the batch lacks: ort-tensor --unsqueeze 0$" \
        ort-optimize -q "$MODELS_DIR/digits.onnx" -i flat.npy -o out.onnx
    fails 5 "the batch lacks" ort-optimize -q "$MODELS_DIR/digits.onnx" -i image=flat.npy -o out.onnx
}

@test "a scalar is float[], not a list of no list" {
    echo '{"v": {"dtype": "float", "shape": [], "data": [1]}}' >scalar.json
    fails 5 "input 'x' is float\[\], the model wants float\[2,3\]" ort-run "$FX/chain.onnx" scalar.json
}
