# What is folded into a file is what a run computes, on every tier, beyond the last bits.
load helper

# edges.onnx takes x [4, 6] and z [8]; folded.onnx has both as constants: large numbers whose sums and
# squares leave the range of floats, small ones whose squares do, and denormals.
write_edges() {
    python3 - "$ROOT/tests/tools" <<'PY'
import sys
sys.path.insert(0, sys.argv[1])
from fixtures import initializer, model, node, npy, value_info
rows = [[3e38] * 6, [1e38, -1e38, 1.5e38, -5e37, 1e38, 1.5e38], [1e-22] * 6, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]]
x = [v for row in rows for v in row]
z = [-1e-40, 1e-40, 0.0, -1.5, 2.5, -88.7, 1e-45, 3e38]
nodes = [node(op, ["x"], [op], attributes={"axes": [1], "keepdims": 0})
         for op in ("ReduceMean", "ReduceL2", "ReduceL1", "ReduceMax")]
nodes += [node("LpNormalization", ["x"], ["LpNormalization"]),
          node("LayerNormalization", ["x", "one"], ["LayerNormalization"])]
nodes += [node(op, ["z"], [op]) for op in ("Floor", "Ceil", "Sqrt", "Sign", "Relu", "Softsign")]
nodes += [node("Mul", ["z", "large"], ["Mul"]), node("Div", ["z", "z"], ["Div"])]
shapes = {n: [4] for n in ("ReduceMean", "ReduceL2", "ReduceL1", "ReduceMax")}
shapes |= {n: [4, 6] for n in ("LpNormalization", "LayerNormalization")}
names = [*shapes, "Floor", "Ceil", "Sqrt", "Sign", "Relu", "Softsign", "Mul", "Div"]
outputs = [value_info(n, shapes.get(n, [8])) for n in names]
fixed = [initializer("one", [6], [1.0] * 6), initializer("large", [8], [3e38] * 8)]
open("edges.onnx", "wb").write(model(nodes, [value_info("x", [4, 6]), value_info("z", [8])], outputs,
                                     fixed))
open("folded.onnx", "wb").write(model(nodes, [], outputs, fixed + [
    initializer("x", [4, 6], x), initializer("z", [8], z)]))
open("x.npy", "wb").write(npy(x, (4, 6)))
open("z.npy", "wb").write(npy(z, (8,)))
PY
}

@test "folded constants are what a run computes, on every tier" {
    local tier
    write_edges
    works ort-optimize folded.onnx --level 1 --no-verify --max-growth 100M -o constants.onnx
    run ort-inspect constants.onnx --nodes
    [ -z "$output" ] || { echo "not folded: $output"; return 1; }
    works ort-run constants.onnx --level 0 -o folded.npz
    for tier in $(sed -n 's/^flags.*\(avx512_vnni\).*/vnni avx512 avx2/p' /proc/cpuinfo | head -n 1) scalar; do
        works ort-run edges.onnx -i x=x.npy -i z=z.npy --level 0 --isa "$tier" -o run.npz
        works ort-tensor run.npz --compare folded.npz --rtol 2e-6 --atol 1e-37
    done
}

@test "a mean of large numbers is no infinity" {
    write_edges
    works ort-run edges.onnx -i x=x.npy -i z=z.npy --outputs ReduceMean -o mean.csv
    [ "$(head -n 1 mean.csv)" = "3e+38" ] || [ "$(sed -n 2p mean.csv)" = "3e+38" ] || { cat mean.csv; return 1; }
}

@test "--denormals keep holds for what is folded" {
    write_edges
    works ort-optimize folded.onnx --level 1 --no-verify --max-growth 100M --denormals keep -o kept.onnx
    works ort-run kept.onnx --level 0 --outputs Floor --denormals keep -o floor.npy
    python3 -c 'import struct; d = open("floor.npy", "rb").read()[-32:]
assert struct.unpack("<8f", d)[0] == -1.0, struct.unpack("<8f", d)'
}

@test "--dump '*' writes no value that the model hasn't" {
    need_models
    works ort-run "$REAL/ultraface_rfb_320/model.onnx" --random 1 --dump '*' --dump-dir seen --hash
    run grep -c _blocked seen/index.json
    [ "$output" = 0 ]
}
