# ort-quantize static --effort: codes of weights and biases by what samples show.
load helper

@test "--effort is bias correction and adaptive rounding, and changes codes alone" {
    works ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 -o plain.onnx
    works ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 --effort -o effort.onnx
    works ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 --bias-correction --adaround \
        -o both.onnx
    python3 - <<'PY'
a, b = (open(p, "rb").read() for p in ("effort.onnx", "both.onnx"))
end = lambda d: d.index(b"ort.quantize.") # the stamp, whose options differ
cut = lambda d: d[:d.rindex(b"r", 0, end(d))]
assert cut(a) == cut(b) and len(cut(a)) > 30000
PY
    ! cmp -s plain.onnx effort.onnx
    ort-inspect plain.onnx --nodes | grep "^#" >a.txt # number, operator, name
    ort-inspect effort.onnx --nodes | grep "^#" >b.txt
    [ "$(wc -l <a.txt)" -gt 20 ]
    cmp a.txt b.txt
}

@test "the same bytes for every number of threads and tier" {
    works ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 --effort --threads 1 -o a.onnx
    works ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 --effort --threads 3 \
        --isa scalar -o b.onnx
    cmp a.onnx b.onnx
}
