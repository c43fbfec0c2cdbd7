# ort-quantize dynamic: no samples, the same file everywhere, what is chosen and what is told.
load helper

net() {
    echo "$MODELS_DIR/digits.onnx"
}

@test "a model becomes integer without samples, and answers as before" {
    works ort-quantize dynamic "$(net)" --small --convolutions -o q.onnx
    [ "$(ls)" = q.onnx ]
    ort-inspect q.onnx --nodes >nodes.txt
    grep -q DynamicQuantizeLinear nodes.txt
    works ort-run "$(net)" --random 1 -o a.npy
    works ort-run q.onnx --random 1 -o b.npy
    ort-tensor a.npy --compare b.npy --atol 1
    ort-inspect q.onnx --metadata | grep -q 'ort.quantize.dynamic'
}

@test "the same bytes for every tier and number of threads" {
    works ort-quantize dynamic "$(net)" --small -o a.onnx
    works ort-quantize dynamic "$(net)" --small --threads 1 --isa scalar -o b.onnx
    cmp a.onnx b.onnx
}

@test "every node is told with -v, and left out by name or operator" {
    ort-quantize dynamic "$(net)" --small --convolutions -v -o q.onnx 2>told.txt
    grep -q 'becomes MatMulInteger' told.txt
    grep -q 'becomes ConvInteger' told.txt
    ort-quantize dynamic "$(net)" --small -v -o q.onnx 2>told.txt
    grep -q 'stays float: convolutions lose less' told.txt
    ort-quantize dynamic "$(net)" --small --convolutions --exclude 'C?nv' -v -o q.onnx 2>told.txt
    grep -q 'stays float: it is excluded' told.txt
    ! grep -q 'becomes ConvInteger' told.txt || false
    ort-quantize dynamic "$(net)" --small --convolutions --include Conv -v -o q.onnx 2>told.txt
    grep -q "stays float: it isn't among what is included" told.txt
}

@test "what is refused" {
    fails 2 "exclude: no node or operator of the model is called 'nothing'" \
        ort-quantize dynamic "$(net)" --exclude nothing -o q.onnx
    fails 2 "observer" ort-quantize dynamic "$(net)" --observer mse -o q.onnx
    fails 2 "convolutions" ort-quantize static "$(net)" --random 1 --convolutions -o q.onnx
}
