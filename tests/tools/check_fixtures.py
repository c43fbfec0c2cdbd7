#!/usr/bin/env python3
"""Write models that run here, or nearly so, and that no checker should call sound.

usage: check_fixtures.py DIR

One fault each, in a graph y = x + w; forests for the trees. Written by hand as those of fixtures.py.
"""
import pathlib
import struct
import sys

from fixtures import FLOAT, attribute, external, field, initializer, model, node, value_info

ML = "ai.onnx.ml"
X, Y = value_info("x", [2]), value_info("y", [2])
W = initializer("w", [2], [1, 2])
ADD = node("Add", ["x", "w"], ["y"])
MINUS_THREE = (1 << 64) - 3


def packed_floats(values):
    return field(4, struct.pack(f"<{len(values)}f", *values))


def graph(name, nodes, inputs, outputs, initializers=()):
    return (b"".join(field(1, n) for n in nodes) + field(2, name) +
            b"".join(field(5, i) for i in initializers) + b"".join(field(11, i) for i in inputs) +
            b"".join(field(12, o) for o in outputs))


def wrapped(graph, imports=(("", 17),), extra=b""):
    return (field(1, 8) + field(7, graph) + extra +
            b"".join(field(8, field(1, d) + field(2, v)) for d, v in imports))


def ints(name, values):
    return field(5, field(1, name) + b"".join(field(8, v) for v in values) + field(20, 7))


def floats(name, values):
    return field(5, field(1, name) + field(7, struct.pack(f"<{len(values)}f", *values)) +
                 field(20, 6))


def forest(children=(1, 2), targets=(0, 0), modes=("BRANCH_LEQ", "LEAF", "LEAF")):
    """One node and two leaves; a fault by what is passed."""
    tree = node("TreeEnsembleRegressor", ["x"], ["y"], "forest", ML)
    tree += ints("nodes_treeids", [0, 0, 0]) + ints("nodes_nodeids", [0, 1, 2])
    tree += ints("nodes_featureids", [0, 0, 0]) + floats("nodes_values", [0.5, 0, 0])
    tree += ints("nodes_truenodeids", [children[0], 0, 0])
    tree += ints("nodes_falsenodeids", [children[1], 0, 0])
    tree += attribute("nodes_modes", list(modes))
    tree += ints("target_treeids", [0, 0]) + ints("target_nodeids", [1, 2])
    tree += ints("target_ids", targets) + floats("target_weights", [1, 2])
    tree += attribute("n_targets", 1)
    inputs, outputs = [value_info("x", [1, 1])], [value_info("y", [1, 1])]
    return wrapped(graph("trees", [tree], inputs, outputs), [("", 17), (ML, 3)])


def sequence_body(outputs, nodes):
    """If with two bodies of one output each."""
    body = graph("body", nodes, [], [value_info(o, [2]) for o in outputs])
    choice = node("If", ["c"], ["y"], "choice")
    for name in ("then_branch", "else_branch"):
        choice += field(5, field(1, name) + field(6, body) + field(20, 5))
    return wrapped(graph("g", [choice], [value_info("c", [], 9), X], [Y]))


def function(nodes, inputs=("a",), outputs=("b",), imports=(("", 17),), attributes=()):
    body = (field(1, "Twice") + b"".join(field(4, i) for i in inputs) +
            b"".join(field(5, o) for o in outputs) + b"".join(field(6, a) for a in attributes) +
            b"".join(field(7, n) for n in nodes) + field(10, "acme") +
            b"".join(field(9, field(1, d) + field(2, v)) for d, v in imports))
    call = node("Twice", ["x"], ["y"], "call", "acme")
    return wrapped(graph("g", [call], [X], [Y]), [("", 17), ("acme", 1)], field(25, body))


def models():
    two = W + packed_floats([3, 4])
    doubled = node("Add", ["a", "a"], ["b"])
    referring = doubled + field(5, field(1, "axis") + field(21, "missing") + field(20, 2))
    relu = node("Relu", ["w"], ["v"])
    return {
        "good": model([ADD], [X], [Y], [W]),
        "absent": model([ADD], [X], [Y], [external("w", [2], "gone.bin")]),
        "two_fields": model([ADD], [X], [Y], [two]),
        "nameless": wrapped(graph("", [ADD], [X], [Y], [W])),
        "untyped_input": model([ADD], [value_info("x", [2], 0)], [Y], [W]),
        "attribute_type": model([node("Softmax", ["x"], ["y"], "soft") +
                                 field(5, field(1, "axis") + field(3, 0))], [X], [Y]),
        "attribute_twofold": model([node("Softmax", ["x"], ["y"], "soft") +
                                    field(5, field(1, "axis") + field(3, 0) + field(4, "0") +
                                          field(20, 2))], [X], [Y]),
        "negative_dim": model([ADD], [value_info("x", [MINUS_THREE])], [Y], [W]),
        "unsorted": model([node("Neg", ["v"], ["y"], "late"), node("Relu", ["x"], ["v"], "early")],
                          [X], [Y]),
        "unimported": model([node("Gelu", ["x"], ["y"], "gelu", "com.microsoft")], [X], [Y]),
        "tree": forest(),
        "tree_target": forest(targets=(0, 7)),
        "tree_child": forest(children=(1, 9)),
        "tree_mode": forest(modes=("BRANCH_SIDEWAYS", "LEAF", "LEAF")),
        "tree_cycle": forest(children=(0, 2)),
        "empty_text": model([node("MaxPool", ["x"], ["y"], attributes={"auto_pad": ""}) +
                             ints("kernel_shape", [1])],
                            [value_info("x", [1, 1, 2])], [value_info("y", [1, 1, 2])]),
        "new_ir": model([ADD], [X], [Y], [W], ir=99),
        "new_opset": model([ADD], [X], [Y], [W], opset=99),
        "old_ir": model([ADD], [X], [Y], [W], ir=3),
        "outer_output": sequence_body(["x"], []),
        "body_order": sequence_body(["y1"], [node("Neg", ["v1"], ["y1"]),
                                             node("Relu", ["x"], ["v1"])]),
        "function_imports": function([doubled], imports=(("acme", 1),)),
        "function_reference": function([referring]),
        "function_outputs": function([doubled], outputs=()),
        "wrong_rank": model([relu, node("Add", ["x", "v"], ["y"])], [X], [value_info("y", [1, 2])],
                            [W]),
        "initializer_fit": wrapped(graph("g", [ADD], [X, value_info("w", [3])], [Y], [W]))[2:] +
        field(1, 3),
    }


folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
for name, data in models().items():
    (folder / f"{name}.onnx").write_bytes(data)
