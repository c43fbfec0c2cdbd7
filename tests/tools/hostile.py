#!/usr/bin/env python3
"""Write small models that ask for endless time or memory.

usage: hostile.py DIR

Each is below 4 MB and, but for many.onnx, valid ONNX. Needs only Python's own library.
"""
import pathlib
import struct
import sys

from fixtures import (FLOAT, INT64, field, initializer, integers, model, node, npy, value_info,
                      varint)

BOOL = 9


def number(n):
    """A signed varint."""
    return varint(n & ((1 << 64) - 1))


def ints(name, values):
    return field(5, field(1, name) + b"".join(varint(8 << 3) + number(v) for v in values) +
                 field(20, 7))


def an_int(name, value):
    return field(5, field(1, name) + varint(3 << 3) + number(value) + field(20, 2))


def a_graph(name, graph):
    return field(5, field(1, name) + field(6, graph) + field(20, 5))


def graph(nodes, inputs, outputs, name="body"):
    return (b"".join(field(1, n) for n in nodes) + field(2, name) +
            b"".join(field(11, i) for i in inputs) + b"".join(field(12, o) for o in outputs))


def scalar(name, value):
    return field(2, INT64) + field(8, name) + field(9, struct.pack("<q", value))


def truth(name):
    return field(2, BOOL) + field(8, name) + field(9, b"\x01")


def roi_align(constant):
    """Each output element is the mean of 2^62 samples."""
    n = node("RoiAlign", ["x", "rois", "batch"], ["y"]) + an_int("sampling_ratio", (1 << 31) - 1)
    fixed = [initializer("rois", [1, 4], [0, 0, 1, 1]), integers("batch", [0])]
    if constant:
        fixed.append(initializer("x", [1, 1, 2, 2], [1, 2, 3, 4]))
    return model([n], [] if constant else [value_info("x", [1, 1, 2, 2])],
                 [value_info("y", [1, 1, 1, 1])], fixed)


def loop(rounds, doubles):
    """A constant Loop: its carried vector doubles each round, or one is added to it."""
    step = node("Concat", ["v", "v"], ["w"]) + an_int("axis", 0) if doubles else node(
        "Add", ["v", "v"], ["w"])
    inner = graph([node("Identity", ["c"], ["d"]), step],
                  [value_info("i", [], INT64), value_info("c", [], BOOL), value_info("v", ["n"])],
                  [value_info("d", [], BOOL), value_info("w", ["m"])])
    n = node("Loop", ["rounds", "true", "start"], ["y"]) + a_graph("body", inner)
    return model([n], [], [value_info("y", ["k"])],
                 [scalar("rounds", rounds), truth("true"), initializer("start", [2], [1, 2])])


def scanned(rounds, width):
    """A Loop that stacks a vector of x's each round."""
    inner = graph([node("Identity", ["c"], ["d"]), node("Expand", ["x", "width"], ["row"])],
                  [value_info("i", [], INT64), value_info("c", [], BOOL)],
                  [value_info("d", [], BOOL), value_info("row", [width])])
    n = node("Loop", ["rounds", "true"], ["rows"]) + a_graph("body", inner)
    sum_ = node("ReduceMax", ["rows"], ["y"]) + an_int("keepdims", 0)
    return model([n, sum_], [value_info("x", [1])], [value_info("y", [])],
                 [scalar("rounds", rounds), truth("true"), integers("width", [width])])


def functions(depth):
    """F1 is two Neg, each further one calls the one before twice."""
    out = b""
    for k in range(1, depth + 1):
        op, domain = ("Neg", "") if k == 1 else (f"F{k - 1}", "acme")
        body = [node(op, ["a"], ["b"], domain=domain), node(op, ["b"], ["c"], domain=domain)]
        out += field(25, field(1, f"F{k}") + field(4, "a") + field(5, "c") +
                     b"".join(field(7, n) for n in body) + field(10, "acme") +
                     b"".join(field(9, field(1, d) + field(2, v)) for d, v in
                              [("", 17), ("acme", 1)]))
    return model([node(f"F{depth}", ["x"], ["y"], domain="acme")], [value_info("x", [1])],
                 [value_info("y", [1])], domains=["acme"]) + out


def many_attributes(count):
    return model([node("Relu", ["x"], ["y"]) + b"".join(an_int(f"a{k}", k) for k in range(count))],
                 [value_info("x", [1])], [value_info("y", [1])])


def wide_pool(kernel):
    """A mean of a kernel that is nearly all padding."""
    n = node("AveragePool", ["x"], ["y"]) + ints("kernel_shape", [kernel]) + ints(
        "pads", [kernel - 1, kernel - 1]) + ints("strides", [kernel])
    return model([n], [value_info("x", [1, 1, 4])], [value_info("y", [1, 1, "n"])])


def nested_loops(depth):
    """Loops in loops: inference of each infers those in it again."""
    inner = None
    for k in range(depth):
        nodes = [node("Identity", [f"c{k}"], [f"d{k}"])]
        if inner is None:
            nodes.append(node("Concat", [f"v{k}", f"v{k}"], [f"w{k}"]) + an_int("axis", 0))
        else:
            nodes.append(node("Loop", ["rounds", "true", f"v{k}"], [f"w{k}"]) +
                         a_graph("body", inner))
        inner = graph(nodes, [value_info(f"i{k}", [], INT64), value_info(f"c{k}", [], BOOL),
                              value_info(f"v{k}", [f"n{k}"])],
                      [value_info(f"d{k}", [], BOOL), value_info(f"w{k}", [f"m{k}"])], f"b{k}")
    n = node("Loop", ["rounds", "true", "x"], ["y"]) + a_graph("body", inner)
    return model([n], [value_info("x", [2])], [value_info("y", ["k"])],
                 [scalar("rounds", 1), truth("true")])


def made_weights(size):
    """Two products with weights that ConstantOfShape makes: a small file of a large model."""
    nodes = []
    for k, value in enumerate([0.5, 0.25]):
        fill = field(1, "value") + field(5, initializer("", [1], [value])) + field(20, 4)
        nodes += [node("ConstantOfShape", [f"shape{k}"], [f"w{k}"]) + field(5, fill),
                  node("MatMul", [f"x{k}", f"w{k}"], [f"x{k + 1}"])]
    return model(nodes, [value_info("x0", [1, size])], [value_info("x2", [1, 16])],
                 [integers("shape0", [size, size]), integers("shape1", [size, 16])])


def long_work():
    """Steps that take long for what their tensors hold: one transform of a prime length, a product
    of integers, a sort of all elements."""
    dft = node("DFT", ["x", "n"], ["y"]) + an_int("axis", 1)
    return {"dft": model([dft], [value_info("x", [1, 4, 1])], [value_info("y", [1, 3000017, 2])],
                         [field(2, INT64) + field(8, "n") + field(9, struct.pack("<q", 3000017))]),
            "product": model([node("MatMul", ["x", "x"], ["y"])],
                             [value_info("x", [1800, 1800], INT64)],
                             [value_info("y", [1800, 1800], INT64)]),
            "unique": model([node("Unique", ["x"], ["y"])], [value_info("x", [3000000])],
                            [value_info("y", ["n"])])}


def constants(count, size):
    """As many weights that ConstantOfShape makes, each read by a node of its own."""
    nodes = []
    for k in range(count):
        value = field(1, "value") + field(5, initializer("", [1], [k + 0.5])) + field(20, 4)
        nodes += [node("ConstantOfShape", ["size"], [f"w{k}"]) + field(5, value),
                  node("Add", [f"x{k}", f"w{k}"], [f"x{k + 1}"])]
    return model(nodes, [value_info("x0", [1])], [value_info(f"x{count}", [size])],
                 [integers("size", [size])])


def contradictions(count):
    """A Loop, whose body is inferred more than once, of nodes that don't fit."""
    nodes = [node("MatMul", ["v", "v"], [f"t{k}"]) for k in range(count)]
    step = graph([node("Identity", ["go"], ["on"]), *nodes, node("Identity", ["v"], ["w"])],
                 [value_info("i", [], INT64), value_info("go", [], BOOL), value_info("v", [2, 3])],
                 [value_info("on", [], BOOL), value_info("w", [2, 3])])
    return model([node("Loop", ["", "", "x"], ["y"]) + a_graph("body", step)],
                 [value_info("x", [2, 3])], [value_info("y", [2, 3])])


def open_loop():
    """A Loop without an end over a value whose sizes are open: only trials tell which it takes."""
    step = graph([node("Identity", ["go"], ["on"]), node("Add", ["v", "v"], ["w"])],
                 [value_info("i", [], INT64), value_info("go", [], BOOL), value_info("v", ["a", "b"])],
                 [value_info("on", [], BOOL), value_info("w", ["a", "b"])])
    return model([node("Loop", ["", "", "x"], ["y"]) + a_graph("body", step)],
                 [value_info("x", ["a", "b"])], [value_info("y", ["a", "b"])])


def long_needle():
    """Runs of 100000 tokens are looked for, each of which differs in its last one only."""
    find = node("BifurcationDetector", ["source", "tokens", "index"], ["out", "match"],
                domain="com.microsoft") + an_int("min_ngram_size", 100000) + an_int(
                    "max_ngram_size", 1000000)
    return model([find], [value_info("source", [400000], INT64), value_info("tokens", [100000], INT64),
                          value_info("index", [], INT64)],
                 [value_info("out", ["n"], INT64), value_info("match", [], INT64)],
                 domains=["com.microsoft"])


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    models = {"roi": roi_align(False), "roi_constant": roi_align(True), "doubling": loop(40, True),
              "endless": loop(1 << 40, False), "scanned": scanned(64, 1 << 20),
              "functions": functions(22), "many": many_attributes(200000),
              "pool": wide_pool(1 << 24), "nested": nested_loops(24),
              "made": made_weights(8448), "constants": constants(4, 3000000),
              "contradictions": contradictions(60000),
              "open_loop": open_loop(), "needle": long_needle(), **long_work()}
    for name, bytes_ in models.items():
        (folder / f"{name}.onnx").write_bytes(bytes_)
    (folder / "source.npy").write_bytes(npy([0] * 400000, (400000,), "<i8"))
    (folder / "tokens.npy").write_bytes(npy([0] * 99999 + [5], (100000,), "<i8"))
    (folder / "index.npy").write_bytes(npy([0], (), "<i8"))


if __name__ == "__main__":
    main()
