# What attacks with random files, options and models found (tests/fuzz/attack): refused in words, at once.
load helper

setup_file() {
    export HX=$BATS_FILE_TMPDIR/hostile
    python3 "$ROOT/tests/tools/hostile_models.py" "$HX"
}

@test "an optimizer's step with a left-out gradient is refused before it runs" {
    fails 3 "momentum_hole\.onnx: node .*Momentum.*input 3 is left out" \
        ort-run "$HX/momentum_hole.onnx" --random 1 --hash
    fails 3 "input 3 is left out" ort-optimize "$HX/momentum_hole.onnx" -o o.onnx
}

@test "a place that no image has is refused" {
    local place
    for place in +9223372036854775807+9223372036854775807 +-1+-1 +5 +5+; do
        fails 2 "--crop: .* is no size" ort-tensor "$HX/x.npy" --crop "1x1$place" -o y.npy
        fails 2 "--pad: .* is no size" ort-tensor "$HX/x.npy" --pad "9x9$place" -o y.npy
    done
    works ort-tensor "$HX/x.npy" --crop 1x1+1+2 --print
    has 6
}

@test "a window of more samples than can be counted is refused" {
    fails 2 "--context .* more samples than can be counted" ort-tensor "$HX/four.npy" --chunk 1 \
        --context 9223372036854775807 -o y.npy
}

@test "raw bytes are compared with the shape before memory is asked for" {
    fails 5 "has 8 bytes, .* needs 4611686018427387904" ort-tensor --from raw --dtype int4 \
        --dims 9223372036854775807 <(printf 12345678) -o y.npy
}

@test "a file of 100,000 tensors is read in seconds" {
    python3 -c '
import json, struct, sys
entries = {f"x{i}": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]} for i in range(100000)}
header = json.dumps(entries).encode()
sys.stdout.buffer.write(struct.pack("<Q", len(header)) + header + b"\\1\\2\\3\\4")' >many.safetensors
    run timeout 10 ort-tensor many.safetensors --select x99999 --print
    [ "$status" -eq 0 ]
    has "x99999"
}
