# ort-quantize weights: methods, forms, what is left, what is refused.
load helper

@test "digits in 4 bits answers as before, smaller, the same bytes everywhere" {
    works ort-quantize weights "$MODELS_DIR/digits.onnx" -o a.onnx --min-sqnr 10
    works ort-quantize weights "$MODELS_DIR/digits.onnx" -o b.onnx --threads 1 --isa scalar
    cmp a.onnx b.onnx
    ort-inspect a.onnx --nodes >nodes.txt
    grep -q MatMulNBits nodes.txt
    works ort-inspect a.onnx --metadata
}

@test "each method, each form" {
    for method in nearest hqq gptq awq; do
        for form in nbits qdq; do
            works ort-quantize weights "$MODELS_DIR/digits.onnx" --random 1 --method $method --form $form \
                --asymmetric-weights -o q.onnx
            works ort-run q.onnx --random 1
        done
    done
}

@test "with samples, the same bytes for any number of threads" {
    for method in gptq awq; do
        works ort-quantize weights "$MODELS_DIR/digits.onnx" --random 1 --method $method -o a.onnx --force
        works ort-quantize weights "$MODELS_DIR/digits.onnx" --random 1 --method $method -o b.onnx \
            --threads 1 --isa scalar --force
        cmp a.onnx b.onnx
    done
}

@test "what is quantized already is left, and said" {
    works ort-quantize weights "$MODELS_DIR/digits.onnx" -o a.onnx
    works ort-quantize weights a.onnx -o b.onnx
    has "quantized already"
}

@test "where nothing has such weights, that is said" {
    run --separate-stderr ort-quantize weights "$FX/chain.onnx" -o c.onnx
    [ "$status" -eq 0 ]
    [[ $stderr == *"nothing in it was quantized"* ]]
    fails 1 "nothing in it was quantized" ort-quantize weights "$FX/chain.onnx" --strict -o d.onnx
    fails 1 "nothing in it was quantized" ort-quantize static "$FX/chain.onnx" --random 1 --strict -o d.onnx
}

@test "nodes are chosen by name or operator, with * and ?, and what none has is refused" {
    codes() { # OPTION...: how many weights become codes
        works ort-quantize weights "$MODELS_DIR/digits.onnx" "$@" -o some.onnx --force
        ort-inspect some.onnx --nodes | grep -c "MatMulNBits"
    }
    [ "$(codes)" -eq 2 ]
    [ "$(codes --include hidden)" -eq 1 ]
    [ "$(codes --exclude 'score?')" -eq 1 ]
    [ "$(codes --include 'Gem*' --exclude hidden)" -eq 1 ]
    echo "hidden	Gemm	12.5" >list.txt
    [ "$(codes --exclude-from list.txt)" -eq 1 ]
    fails 2 "include: no node or operator of the model is called 'MatMul'" ort-quantize weights \
        "$MODELS_DIR/digits.onnx" --include hidden,MatMul -o q.onnx
    echo "zz" >list.txt
    fails 2 "include: no node or operator of the model is called 'zz'" ort-quantize weights "$MODELS_DIR/digits.onnx" --include-from list.txt -o q.onnx
}

@test "what is refused" {
    fails 2 "takes samples" ort-quantize weights "$MODELS_DIR/digits.onnx" --method gptq
    fails 2 "needs --form qdq" ort-quantize weights "$MODELS_DIR/digits.onnx" --block-size column
    fails 2 "2, 4 or 8 bits, not 3" ort-quantize weights "$MODELS_DIR/digits.onnx" --bits 3
    fails 2 "one of static" ort-quantize weights "$MODELS_DIR/digits.onnx" --form qoperator
    fails 2 "one of weights" ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 --form nbits
}
