# ort-tensor: formats, images, sound, tables, operations, judges.
load helper

@test "every tensor format carries an array both ways" {
    for format in npy npz pb safetensors json; do
        works ort-tensor "$FX/x.npy" -o "t.$format"
        works ort-tensor "t.$format" -o back.npy
        same back.npy "$FX/x.npy"
    done
    works ort-tensor "$FX/row.csv" -o row.npy
    works ort-tensor row.npy -o row.csv
    works ort-tensor row.csv --compare row.npy
}

@test "raw bytes need a type and dimensions" {
    works ort-tensor "$FX/x.npy" --format raw -o x.raw
    [ "$(wc -c <x.raw)" -eq 24 ]
    works ort-tensor x.raw --from raw --dtype float --dims 2x3 -o back.npy
    same back.npy "$FX/x.npy"
    fails 5 "x\.raw" ort-tensor x.raw --from raw --dtype float --dims 5x5 -o bad.npy
}

@test "image formats go in and out" {
    for format in png bmp ppm; do
        works ort-tensor "$MODELS_DIR/images/photo.png" -o "p.$format"
        same "p.$format" "$MODELS_DIR/images/photo.png"
    done
    for format in jpg webp; do
        works ort-tensor "$MODELS_DIR/images/photo.png" --quality 95 -o "p.$format"
        works ort-tensor "p.$format" --print
        has 160x160x3
    done
}

@test "image operations in order" {
    works ort-tensor "$MODELS_DIR/images/photo.png" --resize 64 --crop 32 \
        --mean 0.485,0.456,0.406 --std 0.229,0.224,0.225 -o p.npy
    works ort-tensor p.npy --print
    has 1x3x32x32 float
    works ort-tensor "$MODELS_DIR/images/photo.png" --resize 20x30 --filter lanczos -o s.png
    works ort-tensor s.png --print
    has 20x30x3
}

@test "resizing agrees with Pillow within one level" {
    local python=$ROOT/build/venv/bin/python filter
    [ -x "$python" ] || skip "no build/venv"
    for filter in nearest box bilinear hamming bicubic lanczos; do
        works ort-tensor "$MODELS_DIR/images/photo.png" --resize 57x91 --filter $filter -o small.npy
        works ort-tensor "$MODELS_DIR/images/photo.png" --resize 211x333 --filter $filter -o large.npy
        "$python" - "$MODELS_DIR/images/photo.png" $filter <<'PY'
import sys, numpy as np
from PIL import Image
image = Image.open(sys.argv[1]).convert("RGB")
how = Image.Resampling[sys.argv[2].upper()]
for name, size in (("small.npy", (91, 57)), ("large.npy", (333, 211))):
    ours, theirs = np.load(name).astype(int), np.asarray(image.resize(size, how)).astype(int)
    assert ours.shape == theirs.shape, (ours.shape, theirs.shape)
    worst = abs(ours - theirs).max()
    assert worst <= 1, f"{sys.argv[2]} {name}: {worst} levels"
PY
    done
}

@test "cast, reshape, transpose, slice, squeeze, argmax, softmax" {
    works ort-tensor "$FX/x.npy" --cast int64 --reshape 3x2 --transpose 1,0 -o a.npy
    works ort-tensor a.npy --print
    has int64 2x3
    works ort-tensor "$FX/x.npy" --slice 0,1: --print
    has -2 3
    works ort-tensor "$FX/x.npy" --unsqueeze 0 --squeeze --argmax 1 --print
    works ort-tensor "$FX/x.npy" --softmax 1 -o s.npy
    works ort-tensor s.npy --argmax 1 -o i.npy
    works ort-tensor "$FX/x.npy" --argmax 1 -o j.npy
    same i.npy j.npy
}

@test "--scale takes fractions" {
    works ort-tensor "$FX/x.npy" --scale 1/4,1 -o a.json
    run cat a.json
    has 1.25 0.5
}

@test "--compare says no with 1" {
    works ort-tensor "$FX/x.npy" --compare "$FX/x.npy"
    run --separate-stderr ort-tensor "$FX/x.npy" --compare "$FX/y.npy"
    [ "$status" -eq 1 ]
    run --separate-stderr ort-tensor "$FX/x.npy" --compare "$FX/flat.npy"
    [ "$status" -ne 0 ]
}

@test "several files become a stream or a stack" {
    run --separate-stderr sh -c "ort-tensor $FX/x.npy $FX/y.npy | ort-tensor --stream --print"
    [ "$status" -eq 0 ]
    [ "$(grep -c float <<<"$output")" -eq 2 ]
    works ort-tensor "$FX/x.npy" "$FX/y.npy" --stack -o s.npy
    works ort-tensor s.npy --print
    has 2x2x3
}

@test "accuracy and confusion against labels" {
    printf '[[0.1, 0.9], [0.8, 0.2], [0.3, 0.7]]\n' >scores.json
    printf '[1, 0, 0]\n' >labels.json
    works ort-tensor scores.json --accuracy labels.json --confusion
    has "2 of 3"
    run --separate-stderr ort-tensor scores.json --accuracy labels.json --min-accuracy 0.9
    [ "$status" -eq 1 ]
}

@test "bundled digits through the tools reach the stated accuracy" {
    works ort-tensor "$MODELS_DIR/held_out.npz" --select digits_images --scale 1/255 \
        --unsqueeze 1 --name image -o images.npz
    works ort-tensor "$MODELS_DIR/held_out.npz" --select digits_labels -o labels.npy
    works ort-run "$MODELS_DIR/digits.onnx" images.npz -o scores.npy
    works ort-tensor scores.npy --accuracy labels.npy --min-accuracy 0.98
    has "354 of 359"
}

@test "--bytes reads and writes plain bytes" {
    printf 'hello' >text.txt
    works ort-tensor --bytes text.txt -o t.npy
    works ort-tensor t.npy --print
    has uint8 5
    works ort-tensor t.npy --bytes -o -
    [ "$output" = hello ]
}

@test "sound: windows with context" {
    python3 - <<'PY'
import struct, wave
with wave.open("s.wav", "wb") as w:
    w.setnchannels(2); w.setsampwidth(2); w.setframerate(8000)
    w.writeframes(b"".join(struct.pack("<hh", i, -i + 4) for i in range(1000)))
PY
    works ort-tensor s.wav -o mono.npy
    works ort-tensor mono.npy --print
    has 1000
    run --separate-stderr sh -c "ort-tensor s.wav --chunk 250 --context 10 | ort-tensor --stream --print"
    [ "$status" -eq 0 ]
    [ "$(grep -c 1x260 <<<"$output")" -eq 4 ]
}

@test "strings and types that numpy lacks survive an npz" {
    printf '[["a", "\\u00e9"], ["", "d"]]\n' >s.json
    works ort-tensor s.json --dtype string -o s.npz
    works ort-tensor s.npz --plain -o back.json
    python3 -c 'import json; assert json.load(open("s.json")) == json.load(open("back.json"))'
    works ort-tensor "$FX/x.npy" --cast bfloat16 -o b.npz
    works ort-tensor b.npz --print
    has bfloat16
}
