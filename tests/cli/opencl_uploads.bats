# What goes to a device once a session, whatever plans and frames its runs need: weights, in each form that kernels read.
# The library of tests (tests/providers/fake_opencl.c) notes the bytes of each copy.
load helper

setup_file() {
    export NETS=$BATS_FILE_TMPDIR/nets
    ${CC:-gcc} -O1 -g -shared -fPIC "$ROOT/tests/providers/fake_opencl.c" -o "$BATS_FILE_TMPDIR/fake.so" \
        -l:libOpenCL.so.1 || true
    # Each weight has a size of its own, which no table of a plan has.
    "$ROOT/build/venv/bin/python" - "$NETS" <<'END'
import pathlib, sys
import numpy as np
from onnx import TensorProto, helper, numpy_helper, save
out = pathlib.Path(sys.argv[1])
out.mkdir()
random = np.random.default_rng(5)
floats = lambda *shape: random.standard_normal(shape).astype(np.float32) / 8
codes = lambda *shape: random.integers(-100, 100, shape).astype(np.int8)


def net(name, nodes, weights):
    graph = helper.make_graph(nodes, name, [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 24, "h", "h"])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(np.asarray(v), k) for k, v in weights.items()])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    save(helper.make_model(graph, ir_version=8, opset_imports=opsets), out / f"{name}.onnx")


node = helper.make_node
net("floats", [node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]), node("Conv", ["a", "each"], ["b"], group=40),
               node("GlobalAveragePool", ["b"], ["c"]), node("Flatten", ["c"], ["d"]), node("MatMul", ["d", "m"], ["y"])],
    {"w": floats(40, 24, 3, 3), "each": floats(40, 1, 3, 3), "m": floats(40, 72)})
net("siblings", [node("GlobalAveragePool", ["x"], ["a"]), node("Flatten", ["a"], ["b"]),
                 *(node("MatMul", ["b", f"w{i}"], [f"c{i}"]) for i in range(3)),
                 node("Mul", ["c0", "c1"], ["d"]), node("Max", ["d", "c2"], ["y"])],
    {f"w{i}": floats(24, 320) for i in range(3)})
net("normed", [node("GlobalAveragePool", ["x"], ["a"]), node("Flatten", ["a"], ["b"]), node("MatMul", ["b", "w0"], ["c"]),
               node("LayerNormalization", ["c", "s0"], ["d"]), node("MatMul", ["d", "w1"], ["e"]),
               node("SkipLayerNormalization", ["e", "d", "s0", "s1"], ["y"], domain="com.microsoft")],
    {"w0": floats(24, 40), "w1": floats(40, 40), "s0": floats(40), "s1": floats(40)})
net("riders", [node("Conv", ["x", "each"], ["a"], group=24, pads=[1, 1, 1, 1]), node("Sigmoid", ["a"], ["b"]),
               node("Conv", ["b", "w"], ["c"]), node("Relu", ["c"], ["d"]), node("Add", ["x", "d"], ["e"]),
               node("Conv", ["e", "v"], ["f"]), node("Conv", ["e", "w"], ["g"]),
               node("Concat", ["f", "g"], ["h"], axis=1),
               node("Conv", ["h", "apart"], ["i"], group=40, pads=[1, 1, 1, 1], strides=[2, 2]),
               node("Conv", ["i", "u"], ["y"])],
    {"apart": floats(40, 1, 3, 3), "u": floats(16, 40, 1, 1),
     "each": floats(24, 1, 3, 3), "w": floats(24, 24, 1, 1), "v": floats(16, 24, 1, 1)})
net("pyramid", [node("SpaceToDepth", ["x"], ["d"], blocksize=2), node("Gather", ["d", "some"], ["a"], axis=1),
                *(node("MaxPool", ["a"], [f"p{k}"], kernel_shape=[k, k], pads=[k // 2] * 4) for k in (3, 5, 7)),
                node("Conv", ["p3", "w"], ["c"]), node("Conv", ["p5", "v"], ["e"]),
                *(node("Reshape", [v, "flat"], [f"f{v}"]) for v in ("c", "p7", "e")),
                node("Concat", ["fc", "fp7", "fe"], ["j"], axis=2), node("Transpose", ["j"], ["y"], perm=[0, 2, 1])],
    {"some": np.arange(40)[::-1].copy(), "w": floats(40, 40, 1, 1), "v": floats(80, 40, 1, 1),
     "flat": np.array([0, 40, -1])})
net("attends", [node("Reshape", ["x", "flat"], ["a"]), node("Transpose", ["a"], ["b"], perm=[0, 2, 1]),
                node("MultiHeadAttention", ["b", "b", "b"], ["y"], domain="com.microsoft", num_heads=2)],
    {"flat": np.array([0, 24, -1])})
one = {"s": np.float32(0.05), "z": np.uint8(120), "zw": np.int8(0)}
net("codes", [node("QuantizeLinear", ["x", "s", "z"], ["q"]),
              node("QLinearConv", ["q", "s", "z", "w", "s", "zw", "s", "z"], ["a"], pads=[1, 1, 1, 1]),
              node("DequantizeLinear", ["a", "s", "z"], ["y"])], {"w": codes(40, 24, 3, 3), **one})
net("large", [node("Relu", ["x"], ["a"]), node("MaxPool", ["a"], ["y"], kernel_shape=[3, 3], pads=[1, 1, 1, 1])], {})
np.save(out / "x60.npy", floats(1, 24, 60, 60))
for size in (6, 8, 11, 20):
    np.save(out / f"x{size}.npy", floats(size // 4, 24, size, size))
END
}

setup() {
    mkdir "$BATS_TEST_TMPDIR/work"
    cd "$BATS_TEST_TMPDIR/work" || exit 1
    ort-run --provider opencl --settings >/dev/null 2>&1 || skip "this build has no OpenCL"
    [ -e "$BATS_FILE_TMPDIR/fake.so" ] || skip "no library of OpenCL to link with"
    export ORT_OPENCL_LIB=$BATS_FILE_TMPDIR/fake.so FAKE_CL_OWN=1 FAKE_CL_UPLOADS=$PWD/uploads
}

# uploads OPTIONS NET BYTES: how many copies of so many bytes a session makes that runs three shapes, back and forth
uploads() {
    rm -f uploads
    run --separate-stderr ort-run -v --stream --provider "opencl:cost=off$1,cpu" "$NETS/$2.onnx" "$NETS"/x{6,8,6,11,8,6}.npy \
        -o y.json
    [[ $status -eq 0 && $stderr != *"goes on on"* ]] || { echo "$2: $stderr" >&2; return 1; }
    grep -cx "$3" uploads
}

@test "each weight goes there once, whatever shapes runs have" {
    local kind
    for kind in '' :tiles=registers :chains=off; do
        [ "$(uploads "$kind" floats $((40 * 24 * 9 * 4)))" -eq 1 ]
        [ "$(uploads "$kind" floats $((40 * 9 * 4)))" -eq 1 ]
        [ "$(uploads "$kind" floats $((40 * 72 * 4)))" -eq 1 ]
        # The filters of bytes as words of four, in blocks of 16.
        [ "$(uploads "$kind" codes $((48 * 24 * 9)))" -eq 1 ]
    done
    # Three weights that one launch multiplies with.
    [ "$(uploads '' siblings $((24 * 320 * 4)))" -eq 3 ]
    [ "$(uploads :tiles=registers siblings $((24 * 320 * 4)))" -eq 3 ]
    [ "$(uploads :fp16=1 siblings $((24 * 320 * 2)))" -eq 3 ]
    # Inputs go there for each run.
    [ "$(uploads '' floats $((24 * 6 * 6 * 4)))" -eq 3 ]
}

@test "halves of a weight go there once, and its floats never" {
    [ "$(uploads :fp16=1 floats $((40 * 24 * 9 * 2)))" -eq 1 ]
    [ "$(uploads :fp16=1 floats $((40 * 72 * 2)))" -eq 1 ]
    [ "$(uploads :fp16=1 floats $((40 * 24 * 9 * 4)) || true)" -eq 0 ]
}

@test "a processor reads inputs where they lie, to other devices they are sent" {
    local large=$((5 * 24 * 20 * 20 * 4)) small=$((24 * 6 * 6 * 4)) kind
    for kind in cpu discrete; do
        rm -f uploads
        FAKE_CL_KIND=$kind FAKE_CL_COUNT=$PWD/count ort-run --stream --provider opencl:cost=off,cpu "$NETS/floats.onnx" \
            "$NETS"/x{20,6,20,6,20}.npy -o y.json
        [ "$(grep -cx $small uploads || true)" -eq "$([ $kind = cpu ] && echo 0 || echo 2)" ]
        [ "$(grep -cx $large uploads || true)" -eq "$([ $kind = cpu ] && echo 0 || echo 3)" ]
        grep -q ", 0 open" count
    done
}

# every_call NET X LEAST: each of the calls that two runs make, LEAST at least, fails in turn; the CPU's results, and nothing is left
every_call() {
    local calls at
    export FAKE_CL_KIND=cpu FAKE_CL_COUNT=$PWD/count
    ort-run --provider opencl:cost=off,cpu "$NETS/$1.onnx" -i "$NETS/$2.npy" --repeat 2 -o y.npz
    calls=$(cut -d ' ' -f 1 count)
    [ "$calls" -gt "$3" ]
    [ "$1" != large ] || [ ! -e uploads ]
    for at in $(seq "$calls"); do
        run env FAKE_CL_AT="$at" ort-run --provider opencl:cost=off,cpu "$NETS/$1.onnx" -i "$NETS/$2.npy" --repeat 2 -o y.npz
        [ "$status" -eq 0 ] || { echo "$at: $output" >&2; return 1; }
        grep -q ", 0 open" count || { echo "$at: $(cat count)" >&2; return 1; }
    done
}

@test "memory of the host as a buffer: every call fails in turn, and nothing is left" {
    every_call large x60 60
}

# launches NET X: the kernels of a run, by name, with how often each is launched
launches() {
    works ort-profile "$NETS/$1.onnx" -i "$NETS/$2.npy" --provider "opencl:cost=off$3,cpu" --no-peak --repeat 3 -o t.json
    python3 -c '
import collections, json
events = json.load(open("t.json"))
runs = sum(e["name"] == "model_run" for e in events)
kernels = collections.Counter(e["name"][7:] for e in events if e.get("cat") == "Device" and e["name"].startswith("kernel "))
print(*(f"{name} {count / runs:g}" for name, count in sorted(kernels.items())), sep=", ")'
}

@test "products of one value are one launch: every call fails in turn, and nothing is left" {
    every_call siblings x6 60
    [[ $(launches siblings x6) == *"gemm 1"* ]]
}

@test "a norm of a product's rows is no launch on a processor, whose atomics order memory: every call fails in turn" {
    every_call normed x6 60
    [ "$(launches normed x6)" = "gemm 2, mean 1" ] || { launches normed x6; return 1; }
    [ "$(launches normed x6 :chains=off)" = "gemm 2, layer_norm 2, mean 1" ]
    [ "$(FAKE_CL_KIND=discrete launches normed x6)" = "gemm 2, layer_norm 2, mean 1" ]
}

@test "windows of a channel, near or two apart, an addition, a second convolution of one value ride with a convolution" {
    every_call riders x60 60
    [ "$(launches riders x60)" = "conv 3" ] || { launches riders x60; return 1; }
    [ "$(launches riders x60 :chains=off)" = "add_0 1, conv 4, depthwise_rows 2" ]
}

@test "pools of one value, convolutions of two, what is joined and then turned are a launch each" {
    every_call pyramid x60 60
    [ "$(launches pyramid x60)" = "conv 1, join 1, pool 1, take 1" ] || { launches pyramid x60; return 1; }
    [ "$(launches pyramid x60 :chains=off)" = "conv 2, join 1, move 2, pool 3, take 1" ]
}

@test "attention is a launch on a processor, as many keys as there are: every call fails in turn, and nothing is left" {
    every_call attends x11 60
    [ "$(launches attends x20)" = "attend_tiles 1, move 1" ] || { launches attends x20; return 1; }
    [ "$(launches attends x20 :chains=off)" = "attend 1, gemm 2, move 1" ]
    [ "$(FAKE_CL_KIND=discrete launches attends x20)" = "attend 1, gemm 2, move 1" ]
}
