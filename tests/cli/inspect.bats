# ort-inspect: what it shows, checks, cuts out and compares.
load helper

@test "summary names producer, opset, inputs and outputs" {
    works ort-inspect "$MODELS_DIR/digits.onnx"
    has 17 image probabilities
}

@test "--nodes, --io, --shapes, --initializers, --metadata, --functions" {
    works ort-inspect "$MODELS_DIR/digits.onnx" --nodes
    has conv1 Conv softmax Softmax
    works ort-inspect "$MODELS_DIR/digits.onnx" --io
    has image batch probabilities
    works ort-inspect "$MODELS_DIR/upscale.onnx" --shapes
    has correction h w
    works ort-inspect "$MODELS_DIR/digits.onnx" --initializers
    has conv2.weight
    works ort-inspect "$MODELS_DIR/digits.onnx" --metadata
    works ort-inspect "$MODELS_DIR/digits.onnx" --functions
}

@test "every report is JSON with a schema under --json" {
    local what
    for what in "" --nodes --io --shapes --initializers --metadata --functions --ops --memory --costs; do
        run --separate-stderr ort-inspect "$MODELS_DIR/digits.onnx" $what --json
        [ "$status" -eq 0 ] || { echo "$what: $stderr"; return 1; }
        echo "$output" | python3 -c 'import json, sys
assert json.load(sys.stdin)["schema"] == "ort-inspect/1"' || { echo "$what: $output"; return 1; }
    done
}

@test "--check is quiet about a good model and lists all faults of a bad one" {
    works ort-inspect "$MODELS_DIR/digits.onnx" --check
    run --separate-stderr ort-inspect "$FX/twice.onnx" --check
    [ "$status" -eq 3 ]
    [[ $output$stderr == *two* ]]
}

@test "--ops names all gaps at once, with status 1" {
    works ort-inspect "$MODELS_DIR/digits.onnx" --ops
    has Conv Gemm
    run --separate-stderr ort-inspect "$FX/unknown.onnx" --ops
    [ "$status" -eq 1 ]
    [[ $output$stderr == *Frobnicate* && $output$stderr == *Whirl* && $output$stderr == *Twirl* ]]
}

@test "--supports --json lists operators" {
    works ort-inspect --supports --json
    echo "$output" | python3 -c 'import json, sys; json.load(sys.stdin)'
    has Conv TreeEnsembleClassifier
}

@test "--extract, --diff" {
    works ort-inspect "$FX/chain.onnx" --extract a:b -o part.onnx
    works ort-inspect part.onnx --nodes
    has Neg
    [[ $output != *Relu* ]]
    works ort-inspect --diff "$FX/chain.onnx" "$FX/renamed.onnx"
    run --separate-stderr ort-inspect --diff "$FX/chain.onnx" "$FX/other.onnx"
    [ "$status" -eq 1 ]
    fails 2 "nowhere" ort-inspect "$FX/chain.onnx" --extract a:nowhere -o bad.onnx
}

@test "--tensor writes an initializer" {
    works ort-inspect "$FX/weight.onnx" --tensor w -o w.npy
    works ort-tensor w.npy --print
    has 2x3
    fails 2 "nope" ort-inspect "$FX/weight.onnx" --tensor nope -o bad.npy
}

@test "--dot and --svg" {
    works ort-inspect "$FX/chain.onnx" --dot
    has digraph Relu
    works ort-inspect "$FX/chain.onnx" --svg -o g.svg
    python3 -c 'import xml.dom.minidom; xml.dom.minidom.parse("g.svg")'
}

@test "the summary of a huge model is quick and small" {
    python3 - "$ROOT" <<'PY'
import sys
sys.path.insert(0, sys.argv[1] + "/tests/tools")
from fixtures import field, varint, node, value_info
# A sparse file: one initializer of 3 GB of zeros in raw_data, whose bytes are never touched.
size = 3 << 30
head = field(1, size // 4) + field(2, 1) + field(8, "w") + varint(9 << 3 | 2) + varint(size)
tensor_header = varint(5 << 3 | 2) + varint(len(head) + size)
graph = (field(1, node("Add", ["x", "w"], ["out"])) + field(2, "big") +
         field(11, value_info("x", [1])) + field(12, value_info("out", [size // 4])))
imports = field(8, field(1, "") + field(2, 17))
with open("big.onnx", "wb") as f:
    f.write(field(1, 8) + imports + varint(7 << 3 | 2) +
            varint(len(graph) + len(tensor_header) + len(head) + size))
    f.write(graph + tensor_header + head)
    f.truncate(f.tell() + size)
PY
    python3 - <<'PY'
import resource, subprocess
subprocess.run(["ort-inspect", "big.onnx"], check=True, stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
assert used.ru_utime + used.ru_stime < 1, used  # of processors: the time of others doesn't count
assert used.ru_maxrss < 100000, used
PY
}
