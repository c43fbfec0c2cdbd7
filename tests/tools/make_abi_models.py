#!/usr/bin/env python3
"""make_abi_models.py OUT - the small models that the drop-in's scenarios name (tests/abi/scenarios.c)."""
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

OUT = pathlib.Path(sys.argv[1])
F, I, S = T.FLOAT, T.INT64, T.STRING


def value(name, dtype, shape):
    return h.make_tensor_value_info(name, dtype, shape)


def constant(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


def external_weight(name, count):
    """A weight whose bytes lie in external.bin."""
    tensor = onnx.TensorProto(name=name, data_type=F, dims=[count], data_location=onnx.TensorProto.EXTERNAL)
    for key, text in (("location", "external.bin"), ("offset", "0"), ("length", str(4 * count))):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, text
    return tensor


def save(name, nodes, inputs, outputs, initializers=(), opsets=(("", 17),), check=True, **fields):
    graph = h.make_graph(nodes, fields.pop("graph", name), inputs, outputs, initializers,
                         doc_string=fields.pop("graph_doc", ""))
    model = h.make_model(graph, opset_imports=[h.make_opsetid(*o) for o in opsets],
                         ir_version=10 if ("", 21) in opsets else 8, **fields)
    if check:
        onnx.checker.check_model(model)
    (OUT / f"{name}.onnx").write_bytes(model.SerializeToString())
    return model


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    node = h.make_node
    w = constant("w", np.array([10, 20, 30], np.float32))
    save("add", [node("Add", ["x", "w"], ["y"])], [value("x", F, ["n", 3])], [value("y", F, ["n", 3])], [w])
    save("fixed", [node("Add", ["x", "w"], ["y"])], [value("x", F, [2, 3])], [value("y", F, [2, 3])], [w])
    save("weights", [node("Mul", ["x", "w"], ["y"])], [value("x", F, ["n", 3])], [value("y", F, ["n", 3])], [w])
    save("defaults", [node("Add", ["x", "b"], ["y"])], [value("x", F, ["n", 3]), value("b", F, [3])],
         [value("y", F, ["n", 3])], [constant("b", np.array([1, 2, 3], np.float32))])
    save("three", [node("Add", ["a", "b"], ["ab"]), node("Add", ["ab", "c"], ["y"])], [value(v, F, ["n", 4]) for v in "abc"],
         [value("y", F, ["n", 4])])
    draw = np.random.default_rng(5)
    codes = h.make_tensor("w", T.INT4, [64, 8], draw.integers(-8, 8, 512))
    save("dequantized", [node("DequantizeLinear", ["w", "s"], ["dw"], axis=0, block_size=32), node("MatMul", ["x", "dw"], ["y"])],
         [value("x", F, ["n", 64])], [value("y", F, ["n", 8])],
         [codes, constant("s", draw.uniform(0.1, 1, (2, 8)).astype(np.float32))], opsets=(("", 21),))
    save("constant", [node("Identity", ["w"], ["y"])], [], [value("y", F, [3])], [w])
    save("several", [node("Add", ["x", "x"], ["a"]), node("Mul", ["x", "x"], ["b"]), node("Neg", ["x"], ["c"])],
         [value("x", F, ["n", 2])], [value(v, F, ["n", 2]) for v in "abc"])
    save("scalar", [node("Add", ["x", "w"], ["y"])], [value("x", F, [])], [value("y", F, [])],
         [constant("w", np.float32(1))])
    save("rankless", [node("Relu", ["x"], ["y"])], [value("x", F, None)], [value("y", F, None)], check=False)
    outside = external_weight("w", 3)
    save("external", [node("Add", ["x", "w"], ["y"])], [value("x", F, ["n", 3])], [value("y", F, ["n", 3])], [outside],
         check=False)
    (OUT / "external.bin").write_bytes(np.array([10, 20, 30], np.float32).tobytes())
    save("strings", [node("Identity", ["x"], ["y"])], [value("x", S, ["k"])], [value("y", S, ["k"])])
    save("split", [node("SplitToSequence", ["x"], ["y"], axis=0)], [value("x", F, ["n", 2])],
         [h.make_tensor_sequence_value_info("y", F, None)])
    save("length", [node("SequenceLength", ["x"], ["y"])], [h.make_tensor_sequence_value_info("x", F, None)], [value("y", I, [])])
    save("optional", [node("Optional", ["x"], ["y"])], [value("x", F, ["n"])],
         [h.make_value_info("y", h.make_optional_type_proto(h.make_tensor_type_proto(F, ["n"])))],
         opsets=(("", 17),))
    maps = h.make_sequence_type_proto(h.make_map_type_proto(S, h.make_tensor_type_proto(F, None)))
    save("zipmap", [node("ZipMap", ["x"], ["y"], domain="ai.onnx.ml", classlabels_strings=["a", "b", "c"])],
         [value("x", F, ["n", 3])], [h.make_value_info("y", maps)], opsets=(("", 17), ("ai.onnx.ml", 3)), check=False)
    kinds = [T.FLOAT, T.UINT8, T.INT8, T.UINT16, T.INT16, T.INT32, T.INT64, T.STRING, T.BOOL, T.FLOAT16, T.DOUBLE,
             T.UINT32, T.UINT64, T.BFLOAT16]
    save("types", [node("Identity", [f"x{k}"], [f"y{k}"]) for k in kinds],
         [value(f"x{k}", k, ["batch", k, "m"]) for k in kinds], [value(f"y{k}", k, ["batch", k, "m"]) for k in kinds])
    model = save("metadata", [node("Add", ["x", "w"], ["y"])], [value("x", F, ["n", 3])], [value("y", F, ["n", 3])], [w],
                 producer_name="a producer", producer_version="1.2", domain="com.acme", model_version=7,
                 doc_string="what the model is for", graph="the graph", graph_doc="what the graph does")
    h.set_model_props(model, {"author": "nobody"})
    (OUT / "metadata.onnx").write_bytes(model.SerializeToString())
    image = value("x", F, [None, 3, "h", "w"])
    image.type.denotation = "IMAGE"
    for dim, word in zip(image.type.tensor_type.shape.dim, ("DATA_BATCH", "DATA_CHANNEL", "DATA_FEATURE", "DATA_FEATURE")):
        dim.denotation = word
    save("denoted", [node("Relu", ["x"], ["y"])], [image], [value("y", F, [None, 3, "h", "w"])])
    save("invalid", [node("Add", ["x", "nowhere"], ["y"])], [value("x", F, [2])], [value("y", F, [2])], check=False)
    save("unknown_op", [node("NoSuchOperator", ["x"], ["y"])], [value("x", F, [2])], [value("y", F, [2])], check=False)
    (OUT / "garbage.onnx").write_bytes(bytes(range(256)) * 4)
    (OUT / "empty.onnx").write_bytes(b"")

    custom()
    adapters()


def custom():
    """Models with the operators of tests/abi/custom_ops.c."""
    d, unknown = T.DOUBLE, T.INT32

    def one(name, op, inputs="x", outputs="y", *, dtype=F, given=F, more=(), version=1, dims=("n", "k"), **attributes):
        node = h.make_node(op, inputs.split(","), outputs.split(","), domain="test", name=f"node_{name}", **attributes)
        save(name, [node], [value("x", dtype, ["n", "k"])],
             [value(o, given, list(dims) if dims is not None else None) for o in outputs.split(",") if o], more,
             opsets=(("", 17), ("test", version)), check=False)

    b = constant("b", np.array([3], np.float32))
    one("scale_float", "Scale", factor=2.0)
    one("scale_int64", "Scale", dtype=I, given=I, factor=3.0)
    one("scale_double", "Scale", dtype=d, given=d, factor=0.5)
    one("scale_int32", "Scale", dtype=unknown, given=unknown, factor=0.5)
    one("maybe_all", "Maybe", "x,b", "y,z", more=[b])
    one("maybe_one", "Maybe")
    save("maybe_z", [h.make_node("Maybe", ["x", "b"], ["ignored", "y"], domain="test")], [value("x", F, ["n", "k"])],
         [value("y", F, ["n", "k"])], [b], opsets=(("", 17), ("test", 1)), check=False)
    one("total", "Total", "x,x,x")
    one("total_one", "Total", "x")
    one("sizes", "Sizes", "x,i,b", given=I, more=[b, constant("i", np.arange(4))], dims=(3,))
    one("same_float", "Same")
    one("same_int64", "Same", dtype=I, given=I)
    one("shout", "Shout", dtype=S, given=S)
    one("widen", "Widen", to=5, dims=None)
    one("told", "Told", "x,,b", more=[b], i=-7, f=0.25, s="text", fs=[1.5, 2.5], ss=["a", "", "bc"],
        t=numpy_helper.from_array(np.array([[1, 2]], np.float32)), **{"is": [4, 5, 6]})
    one("count", "Count", given=I, dims=())
    one("each", "Each")
    one("twice", "Twice")
    one("aged_1", "Aged", version=1)
    one("aged_3", "Aged", version=3)
    one("unmade", "Unmade")
    one("broken", "Broken")
    one("shapeless", "Shapeless")
    one("unknown_custom", "NoSuchOperator")
    bodies = {key: h.make_graph([h.make_node(op, ["x"], [key], domain="test", **more)], key, [], [value(key, F, None)])
              for key, op, more in (("then_branch", "Scale", {"factor": 4.0}), ("else_branch", "Same", {}))}
    save("custom_if", [h.make_node("ReduceSum", ["x"], ["sum"], keepdims=0), h.make_node("Greater", ["sum", "zero"], ["c"]),
                       h.make_node("If", ["c"], ["y"], **bodies)], [value("x", F, ["n", "k"])], [value("y", F, None)],
         [constant("zero", np.float32(0))], opsets=(("", 17), ("test", 1)), check=False)


def adapters():
    """A model whose inputs `a` and `b` have defaults, and adapters in onnxruntime's own format."""
    import onnxruntime

    a, b = constant("a", np.zeros((3, 2), np.float32)), constant("b", np.zeros((2, 3), np.float32))
    node = h.make_node
    save("lora", [node("MatMul", ["x", "a"], ["xa"]), node("MatMul", ["xa", "b"], ["low"]), node("Add", ["x", "low"], ["y"])],
         [value("x", F, ["n", 3]), value("a", F, [3, 2]), value("b", F, [2, 3])], [value("y", F, ["n", 3])], [a, b])
    arrays = {"a": np.arange(6, dtype=np.float32).reshape(3, 2), "b": np.ones((2, 3), np.float32)}
    for name, parameters in (("lora", arrays), ("stranger", {"c": arrays["a"]})):
        adapter = onnxruntime.AdapterFormat()
        adapter.set_parameters({k: onnxruntime.OrtValue.ortvalue_from_numpy(v) for k, v in parameters.items()})
        adapter.set_adapter_version(1)
        adapter.set_model_version(1)
        adapter.export_adapter(str(OUT / f"{name}.onnx.onnx_adapter"))
    whole = (OUT / "lora.onnx.onnx_adapter").read_bytes()
    (OUT / "damaged.onnx.onnx_adapter").write_bytes(whole[:len(whole) // 2])
    (OUT / "other.onnx.onnx_adapter").write_bytes(b"something else entirely" * 10)


main()
