# ort-quantize: verbs, the file that is written, what is refused.
load helper

@test "a model is quantized, and answers as before" {
    works ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 -o q.onnx
    [ "$(ls)" = q.onnx ]
    ort-inspect q.onnx --nodes >nodes.txt
    grep -q QuantizeLinear nodes.txt
    works ort-run "$MODELS_DIR/digits.onnx" --random 1 -o a.npy
    works ort-run q.onnx --random 1 -o b.npy
    ort-tensor a.npy --compare b.npy --atol 1
}

@test "without -o nothing is written" {
    works ort-quantize static "$MODELS_DIR/digits.onnx" --random 1
    [ -z "$(ls -A)" ]
}

@test "a pipe takes it, a link stays a link, a folder that is not there is told" {
    ort-optimize "$MODELS_DIR/digits.onnx" --level 1 -o - | ort-quantize static - --random 1 -o - >p.onnx
    works ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 -o real.onnx
    ln -s real.onnx link.onnx
    works ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 -o link.onnx
    [ -L link.onnx ]
    fails 5 "can't create" ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 -o no/q.onnx
    # the place is asked for before anything is read, so that no minutes are lost
    mkdir folder
    for verb in static dynamic weights calibrate; do
        fails 5 "no/q.onnx: can't create" ort-quantize $verb nosuch.onnx -o no/q.onnx
        fails 5 "folder: can't write: Is a directory" ort-quantize $verb nosuch.onnx -o folder
    done
    [ -z "$(ls -A folder)" ]
}

@test "the same bytes for every tier and number of threads" {
    works ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 -o a.onnx
    works ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 --threads 1 --isa scalar -o b.onnx
    cmp a.onnx b.onnx
}

@test "what is refused" {
    fails 2 "takes samples: -i FILE, or --random" ort-quantize static "$MODELS_DIR/digits.onnx" -o q.onnx
    fails 2 "no MODEL" ort-quantize static --random 1
    fails 2 "needs a verb before MODEL" ort-quantize "$MODELS_DIR/digits.onnx" --observer mse
    fails 3 "/dev/null is empty" ort-quantize static /dev/null --random 1 -o q.onnx
    fails 2 "both come from stdin" ort-quantize static - -i - -o q.onnx
    fails 2 "both go to stdout" ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 --json -o -
}

@test "the help of a verb has its options alone" {
    works ort-quantize static --help
    has "usage: ort-quantize static" "--observer"
    works ort-quantize --help
    has "[VERB]" "  static "
}

@test "the documented pipeline: folded, quantized, optimized" {
    for net in digits upscale; do
        ort-optimize --level 1 "$MODELS_DIR/$net.onnx" -o - 2>/dev/null |
            ort-quantize static - --random 3 -o - 2>/dev/null | ort-optimize - -o "$net.int8.onnx" >report.txt
        grep -q "^verified" report.txt
        works ort-run "$net.int8.onnx" --random 1 --hash
    done
}

@test "weights that are listed as inputs, as exporters did, are no samples" {
    PYTHONPATH=$ROOT/tests/tools python3 - <<'PY'
import fixtures as f
open("old.onnx", "wb").write(f.model(
    [f.node("Conv", ["x", "w"], ["y"])], [f.value_info("x", [1, 3, 8, 8]), f.value_info("w", [8, 3, 3, 3])],
    [f.value_info("y", [1, 8, 6, 6])],
    [f.initializer("w", [8, 3, 3, 3], [i % 11 - 5 for i in range(216)])], opset=11))
PY
    works ort-quantize static old.onnx --random 1 -o q.onnx
    has "products  1 of 1 on integers"
    works ort-quantize static old.onnx --random 1 --effort -o effort.onnx
}
