#!/usr/bin/env python3
"""Patterns as exporters of PyTorch write them, built with onnx.helper: ort-optimize must find each,
and onnxruntime must compute the same of the file that it writes.

usage: check_forms.py [NAME...]
"""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from check_written import check

SIZES = {"batch": 2, "seq": 5}  # of symbolic dims, when a model runs
TOOL = pathlib.Path(__file__).resolve().parents[2] / "build/bin/ort-optimize"
FORMS = {}


class Net:
    """g.op("MatMul", x, w, axis=1): a node, and the name of its result (of several: a list)."""

    def __init__(self, opset):
        self.opset, self.nodes, self.inputs, self.constants = opset, [], [], []
        self.feeds = {}
        self.random = np.random.default_rng(7)

    def input(self, name, shape, below=0):
        """Floats; int64 numbers from 0 on where `below` is given."""
        kind = TensorProto.INT64 if below else TensorProto.FLOAT
        sizes = [SIZES.get(d, d) for d in shape]
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        self.feeds[name] = (self.random.integers(0, below, sizes) if below
                            else self.random.normal(0, 1, sizes).astype(np.float32))
        return name

    def const(self, value, dtype=np.float32):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def ints(self, *values):
        return self.const(values, np.int64)

    def weight(self, *shape):
        return self.const(self.random.normal(0, 0.3, shape))

    def op(self, kind, *inputs, outs=1, **attributes):
        names = [f"v{len(self.nodes)}_{i}" for i in range(outs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, f"n{len(self.nodes)}",
                                           **attributes))
        return names[0] if outs == 1 else names

    def model(self, *results):
        outputs = [helper.make_empty_tensor_value_info(r) for r in results]
        graph = helper.make_graph(self.nodes, "form", self.inputs, outputs, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)],
                                  ir_version=10)
        return onnx.shape_inference.infer_shapes(model)


def form(*wanted, opset=17, contrib=False):
    """Of these operators the written file must hold one each ("!Op": none)."""
    def keep(build):
        FORMS[build.__name__] = (build, wanted, opset, contrib)
        return build
    return keep


# ---- codes

def coded(g, x, scale, zero):
    s, z = g.const(scale), g.const(zero, np.uint8)
    return g.op("DequantizeLinear", g.op("QuantizeLinear", x, s, z), s, z)


@form("QLinearWhere", contrib=True)
def where_of_codes(g):
    x, w = g.input("x", [2, 3, 5]), g.input("w", [2, 3, 5])
    c = g.op("Greater", x, w)
    r = g.op("Where", c, coded(g, x, 0.02, 120), coded(g, w, 0.03, 110))
    return [coded(g, r, 0.025, 118)]


@form("QLinearWhere", contrib=True)
def where_of_mask(g):
    x, w = g.input("x", [2, 3, 5]), g.input("w", [2, 3, 5])
    c = g.op("Greater", x, w)
    r = g.op("Where", c, g.const(-np.inf), coded(g, x, 0.02, 120))
    return [coded(g, r, 0.025, 118)]


@form("Where", "!Cast")
def where_of_one_scale(g):
    x, w = g.input("x", [2, 3, 5]), g.input("w", [2, 3, 5])
    c = g.op("Greater", x, w)
    return [coded(g, g.op("Where", c, coded(g, x, 0.02, 120), coded(g, w, 0.02, 120)), 0.02, 120)]


@form("ArgMax", "!DequantizeLinear")
def argmax_of_codes(g):
    x = coded(g, g.input("x", [2, 30]), 0.1, 120)
    return [g.op("ArgMax", x, axis=-1, keepdims=0)]


@form("MatMulIntegerToFloat", contrib=True)
def product_to_float(g):
    x = coded(g, g.input("x", [2, 3, 16]), 0.02, 120)
    w = g.const(g.random.integers(0, 255, (16, 8)), np.uint8)
    w = g.op("DequantizeLinear", w, g.const(0.01), g.const(128, np.uint8))
    return [g.op("Softmax", g.op("MatMul", x, w))]


@form("QGemm", contrib=True)
def gemm_to_float(g):
    x = coded(g, g.input("x", [4, 16]), 0.02, 120)
    w = g.const(g.random.integers(-127, 127, (8, 16)), np.int8)
    w = g.op("DequantizeLinear", w, g.const(0.01), g.const(0, np.int8))
    b = g.op("DequantizeLinear", g.const(g.random.integers(-900, 900, 8), np.int32),
             g.const(np.float32(0.02) * np.float32(0.01)))
    return [g.op("Gemm", x, w, b, transB=1)]


@form("Resize", "DequantizeLinear")
def resize_of_codes(g):
    x = coded(g, g.input("x", [1, 2, 4, 4]), 0.02, 120)
    r = g.op("Resize", x, "", g.const([1, 1, 2, 2]), mode="nearest",
             coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    return [coded(g, r, 0.02, 120)]


# ---- products

@form("FusedMatMul", "!Transpose", contrib=True)
def product_over_batches(g):
    a = g.op("Transpose", g.input("x", [5, 2, 3, 7]), perm=[1, 2, 0, 3])
    b = g.op("Transpose", g.input("w", [4, 2, 3, 7]), perm=[1, 2, 3, 0])
    return [g.op("Mul", g.op("MatMul", a, b), g.const(0.25))]


@form("FusedMatMul", "!Transpose", contrib=True)
def product_over_one_batch(g):
    a = g.op("Transpose", g.input("x", [5, 1, 3, 7]), perm=[1, 2, 0, 3])
    return [g.op("MatMul", a, g.input("w", [2, 3, 7, 4]))]


@form("FusedMatMul", "!Transpose", contrib=True)
def product_of_steps(g):
    """torch.bmm of [seq, batch, hidden]."""
    a = g.op("Transpose", g.input("x", ["seq", "batch", 8]), perm=[1, 0, 2])
    b = g.op("Transpose", g.input("w", ["seq", "batch", 8]), perm=[1, 2, 0])
    return [g.op("Softmax", g.op("MatMul", a, b))]


# ---- running

def run(name, scratch):
    """"" when all is well; else what is wrong."""
    build, wanted, opset, contrib = FORMS[name]
    folder, written = scratch / name, scratch / f"{name}.onnx"
    folder.mkdir()
    net = Net(opset)
    onnx.save(net.model(*build(net)), folder / "model.onnx")
    np.savez(folder / "inputs.npz", **net.feeds)
    options = ["--contrib"] if contrib else []
    again = scratch / "again.onnx"
    for source, target in ((folder / "model.onnx", written), (written, again)):
        done = subprocess.run([TOOL, source, *options, "-q", "-o", target], capture_output=True,
                              text=True, check=False)
        if done.returncode:
            return done.stderr.strip()
    if written.read_bytes() != again.read_bytes():
        return "a second run changes it"
    kinds = [n.op_type for n in onnx.load(written).graph.node]
    for op_type in wanted:
        if (op_type.lstrip("!") in kinds) == op_type.startswith("!"):
            return f"{op_type} is wanted, it has {' '.join(kinds)}"
    result = check(written, folder)
    return "onnxruntime doesn't run it" if result is None else result


def main():
    passed = failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        for name in sys.argv[1:] or FORMS:
            why = run(name, pathlib.Path(scratch))
            if why:
                failed += 1
                print(f"not ok {name}: {why}")
            passed += not why
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
