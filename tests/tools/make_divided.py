"""Nets that are hard to divide between a processor and a device, as files: make_divided.py FOLDER [--fast]

Nodes that are worth a device's while are convolutions of 462 million multiply-adds; Asinh has no kernel there. --fast:
of 7 million, for runs.
"""
import pathlib
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

SIDE = 14 if "--fast" in sys.argv else 56
CHANNELS = 64 if "--fast" in sys.argv else 128


class Net:
    def __init__(self, shape=(1, CHANNELS, SIDE, SIDE)):
        self.shape, self.nodes, self.weights = list(shape), [], {}

    def add(self, op, *inputs, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=f"n{len(self.nodes)}", **attributes))
        return name

    def conv(self, x, weight="w"):
        if weight not in self.weights:
            random = np.random.default_rng(len(self.weights))
            values = random.standard_normal((CHANNELS, CHANNELS, 3, 3)) / np.sqrt(9 * CHANNELS)
            self.weights[weight] = values.astype(np.float32)
        return self.add("Conv", x, weight, pads=[1, 1, 1, 1])

    def convs(self, x, count):
        for i in range(count):
            x = self.conv(x, f"w{len(self.nodes)}")
        return x

    def save(self, path, *outputs):
        graph = helper.make_graph(self.nodes, path.stem,
                                  [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)],
                                  [helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in outputs],
                                  [numpy_helper.from_array(w, n) for n, w in self.weights.items()])
        save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), path)


def large(net):
    return [net.convs("x", 12)]


def small(net):
    net.shape, x = [1, 1000], "x"
    for op in ("Exp", "Sin", "Neg", "Cos", "Tanh", "Abs") * 2:
        x = net.add(op, x)
    return [x]


def diamond(net):
    x = net.convs("x", 2)
    for _ in range(2):
        left, right = net.convs(x, 1), net.convs(x, 1)
        x = net.add("Add", left, right)
    return [net.convs(x, 1)]


def ping_pong(net):
    net.shape, x = [1, 1000], "x"
    for op in ("Asinh", "Exp") * 4 + ("Asinh",):
        x = net.add(op, x)
    return [x]


def pong_large(net):
    x = net.convs("x", 1)
    for _ in range(3):
        x = net.convs(net.add("Asinh", x), 1)
    return [x]


def shared(net):
    """One weight for all of them, which a node of the processor reads, too."""
    x = "x"
    for _ in range(8):
        x = net.conv(x)
    bias = net.add("Asinh", net.add("ReduceSum", x, keepdims=0))
    return [x, net.add("Mul", bias, "w")]


def left_early(net):
    middle = net.convs("x", 4)
    return [middle, net.convs(middle, 4)]


def unclaimed(net):
    return [net.add("Asinh", net.add("GlobalAveragePool", net.convs("x", 7)))]


def body(net):
    """A body that the device has no kernels for reads what it computed."""
    x = net.convs("x", 7)
    mean = net.add("ReduceMean", x, keepdims=0)
    net.weights["zero"] = np.float32(0)
    bodies = {}
    for branch, source in (("then_branch", x), ("else_branch", mean)):
        out = helper.make_tensor_value_info(branch, TensorProto.FLOAT, None)
        bodies[branch] = helper.make_graph([helper.make_node("Asinh", [source], [branch])], branch, [], [out])
    return [net.add("If", net.add("Greater", mean, "zero"), **bodies)]


NETS = (large, small, diamond, ping_pong, pong_large, shared, left_early, unclaimed, body)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for make in NETS:
        net = Net()
        net.save(folder / f"{make.__name__}.onnx", *make(net))


if __name__ == "__main__":
    main()
