#!/usr/bin/env python3
"""A decoder of LLaMA's shape with made-up weights in external data, to measure what conversions of large models take.

usage: llama_shape.py FOLDER [--layers N] [--hidden N] [--inner N] [--heads N] [--groups N] [--words N] [--sparse]

The defaults are the shape of TinyLlama, 1.1 billion parameters in 4.4 GB. Plain ONNX operators: RMS norms, attention of
grouped heads without positions, SiLU gates. --sparse leaves the data a hole in the file: sizes and memory are those of a
real one, and the disk holds nothing. FOLDER/model.onnx reads "ids", int64[1, n].
"""
import argparse
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper

ALIGNMENT = 4096
PIECE = 1 << 22  # numbers drawn at a time


class Net:
    def __init__(self, folder, sparse):
        self.nodes, self.weights, self.count, self.at = [], [], 0, 0
        self.sparse, self.draw = sparse, np.random.default_rng(1)
        self.file = open(folder / "model.onnx.data", "wb")

    def weight(self, name, *dims, scale=None):
        """Normal numbers; scale None: of a product that keeps the size of what it multiplies."""
        count = int(np.prod(dims))
        scale = scale or dims[0] ** -0.5
        self.at += -self.at % ALIGNMENT
        t = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=dims, data_location=TensorProto.EXTERNAL)
        for key, value in ("location", "model.onnx.data"), ("offset", self.at), ("length", 4 * count):
            t.external_data.add(key=key, value=str(value))
        self.file.seek(self.at)
        for begin in range(0, 0 if self.sparse else count, PIECE):
            some = self.draw.standard_normal(min(PIECE, count - begin), np.float32)
            (some * np.float32(scale)).tofile(self.file)
        self.at += 4 * count
        self.weights.append(t)
        return name

    def constant(self, values, dtype=np.int64):
        name = f"constant_{len(self.weights)}"
        self.weights.append(onnx.numpy_helper.from_array(np.array(values, dtype), name))
        return name

    def __call__(self, op, *inputs, **attributes):
        self.count += 1
        result = f"{op.lower()}_{self.count}"
        self.nodes.append(helper.make_node(op, inputs, [result], name=result, **attributes))
        return result

    def close(self):
        self.file.truncate(self.at)
        self.file.close()


def norm(net, x):
    mean = net("ReduceMean", net("Mul", x, x), axes=[-1], keepdims=1)
    return net("Div", x, net("Sqrt", net("Add", mean, net.constant([1e-5], np.float32))))


def heads_of(net, x, weight, count, size, repeat, perm):
    """[1, n, count * size] as [1, count * repeat, ...], in the order of perm."""
    x = net("Reshape", net("MatMul", x, weight), net.constant([1, -1, count, 1, size]))
    if repeat > 1:
        x = net("Expand", x, net.constant([1, 1, 1, repeat, 1]))
    return net("Transpose", net("Reshape", x, net.constant([1, -1, count * repeat, size])), perm=perm)


def layer(net, x, k, o):
    size, repeat = o.hidden // o.heads, o.heads // o.groups
    small = o.hidden // repeat
    h = norm(net, x)
    q = heads_of(net, h, net.weight(f"q_{k}", o.hidden, o.hidden), o.heads, size, 1, [0, 2, 1, 3])
    keys = heads_of(net, h, net.weight(f"k_{k}", o.hidden, small), o.groups, size, repeat, [0, 2, 3, 1])
    values = heads_of(net, h, net.weight(f"v_{k}", o.hidden, small), o.groups, size, repeat, [0, 2, 1, 3])
    scores = net("Softmax", net("Mul", net("MatMul", q, keys), net.constant([size**-0.5], np.float32)), axis=-1)
    mixed = net("Transpose", net("MatMul", scores, values), perm=[0, 2, 1, 3])
    mixed = net("Reshape", mixed, net.constant([1, -1, o.hidden]))
    x = net("Add", x, net("MatMul", mixed, net.weight(f"o_{k}", o.hidden, o.hidden)))
    h = norm(net, x)
    gate = net("MatMul", h, net.weight(f"gate_{k}", o.hidden, o.inner))
    up = net("MatMul", h, net.weight(f"up_{k}", o.hidden, o.inner))
    gate = net("Mul", net("Mul", gate, net("Sigmoid", gate)), up)
    return net("Add", x, net("MatMul", gate, net.weight(f"down_{k}", o.inner, o.hidden)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    for name, value in dict(layers=22, hidden=2048, inner=5632, heads=32, groups=4, words=32000).items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--sparse", action="store_true")
    o = parser.parse_args()
    o.folder.mkdir(parents=True, exist_ok=True)
    net = Net(o.folder, o.sparse)
    x = net("Gather", net.weight("words", o.words, o.hidden, scale=1), "ids")
    for k in range(o.layers):
        x = layer(net, x, k, o)
    net.nodes.append(helper.make_node("MatMul", [norm(net, x), net.weight("head", o.hidden, o.words)], ["logits"]))
    net.close()
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, [1, "n"])
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, "n", o.words])
    graph = helper.make_graph(net.nodes, "llama", [ids], [logits], net.weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (o.folder / "model.onnx").write_bytes(model.SerializeToString())


main()
