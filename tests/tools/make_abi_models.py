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


def save(name, nodes, inputs, outputs, initializers=(), opsets=(("", 17),), check=True, **fields):
    graph = h.make_graph(nodes, fields.pop("graph", name), inputs, outputs, initializers,
                         doc_string=fields.pop("graph_doc", ""))
    model = h.make_model(graph, opset_imports=[h.make_opsetid(*o) for o in opsets], ir_version=8, **fields)
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
    save("constant", [node("Identity", ["w"], ["y"])], [], [value("y", F, [3])], [w])
    save("several", [node("Add", ["x", "x"], ["a"]), node("Mul", ["x", "x"], ["b"]), node("Neg", ["x"], ["c"])],
         [value("x", F, ["n", 2])], [value(v, F, ["n", 2]) for v in "abc"])
    save("scalar", [node("Add", ["x", "w"], ["y"])], [value("x", F, [])], [value("y", F, [])],
         [constant("w", np.float32(1))])
    save("rankless", [node("Relu", ["x"], ["y"])], [value("x", F, None)], [value("y", F, None)], check=False)
    save("strings", [node("Identity", ["x"], ["y"])], [value("x", S, ["k"])], [value("y", S, ["k"])])
    save("split", [node("SplitToSequence", ["x"], ["y"], axis=0)], [value("x", F, ["n", 2])],
         [h.make_tensor_sequence_value_info("y", F, None)])
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


main()
