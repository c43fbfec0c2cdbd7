#!/usr/bin/env python3
"""Write models that run here, or nearly so, and that no checker should call sound.

usage: check_fixtures.py DIR

One fault each, in a graph y = x + w; forests for the trees. Written by hand as those of fixtures.py.
"""
import math
import pathlib
import struct
import sys

from fixtures import (FLOAT, INT64, attribute, external, field, initializer, list_of_maps, model, node,
                      value_info)

UINT8, INT8, INT32, STRING, BOOL = 2, 3, 6, 8, 9
ML = "ai.onnx.ml"
X, Y = value_info("x", [2]), value_info("y", [2])
W = initializer("w", [2], [1, 2])
ADD = node("Add", ["x", "w"], ["y"])
MINUS_ONE, MINUS_THREE = (1 << 64) - 1, (1 << 64) - 3


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
    call = node("Twice", ["x"][:len(inputs)], ["y"], "call", "acme")
    return wrapped(graph("g", [call], [X], [Y]), [("", 17), ("acme", 1)], field(25, body))


def tensor(name, dtype, dims, data):
    value = b"".join(field(1, d) for d in dims) + field(2, dtype) + field(9, data)
    return field(5, field(1, name) + field(5, value) + field(20, 4))


def ensemble(children=((0, 1), (1, 1)), tracks=None):
    """TreeEnsemble: node and leaf by number, a leaf where the second of a pair is 1."""
    tree = node("TreeEnsemble", ["x"], ["y"], "forest", ML)
    tree += ints("nodes_featureids", [0]) + tensor("nodes_splits", FLOAT, [1], struct.pack("<f", 0.5))
    tree += tensor("nodes_modes", UINT8, [1], b"\0")
    tree += ints("nodes_truenodeids", [children[0][0]]) + ints("nodes_trueleafs", [children[0][1]])
    tree += ints("nodes_falsenodeids", [children[1][0]]) + ints("nodes_falseleafs", [children[1][1]])
    tree += ints("leaf_targetids", [0, 0]) + tensor("leaf_weights", FLOAT, [2], struct.pack("<2f", 1, 2))
    tree += ints("tree_roots", [0]) + attribute("n_targets", 1)
    tree += ints("nodes_missing_value_tracks_true", tracks) if tracks is not None else b""
    inputs, outputs = [value_info("x", [1, 1])], [value_info("y", [1, 1])]
    return wrapped(graph("trees", [tree], inputs, outputs), [("", 17), (ML, 5)])


def learned(op, inputs, outputs, attributes):
    return wrapped(graph("g", [node(op, ["x"], [o[1] for o in outputs], op, ML) + attributes], inputs,
                         [o[0] for o in outputs]), [("", 17), (ML, 1)])


def zip_map(labels):
    return learned("ZipMap", [value_info("x", [1, 2])], [(list_of_maps("y"), "y")], labels)


def vectors(params):
    """A support vector machine of two classes, a vector each."""
    outputs = [(value_info("l", [1], INT64), "l"), (value_info("s", [1, 2]), "s")]
    return learned("SVMClassifier", [value_info("x", [1, 1])], outputs,
                   ints("classlabels_ints", [0, 1]) + ints("vectors_per_class", [1, 1]) +
                   floats("support_vectors", [0, 1]) + floats("coefficients", [1, -1]) +
                   floats("rho", [0]) + floats("kernel_params", params) +
                   attribute("kernel_type", "RBF"))


def one(op, inputs, output, opset=18, dtype=FLOAT, outputs=("y",), **attributes):
    """A model of one node, named as its operator."""
    names = [i[0] for i in inputs]
    return model([node(op, names, outputs, op, attributes=attributes)],
                 [value_info(*i) for i in inputs if i[0]], [value_info("y", output, dtype)], opset=opset)


def wide(name, dims, dtype):
    """An initializer of elements of 4 bytes, all 1 as integers."""
    return (b"".join(field(1, d) for d in dims) + field(2, dtype) + field(8, name) +
            field(9, struct.pack("<i", 1) * math.prod(dims)))


def numbers(name, values):
    """An initializer of INT64."""
    return (field(1, len(values)) + field(2, INT64) + field(8, name) +
            field(9, struct.pack(f"<{len(values)}q", *values)))


def divided(op, divisor):
    """Integers by a constant."""
    return model([node(op, ["x", "w"], ["y"], op)], [value_info("x", [2], INT64)],
                 [value_info("y", [2], INT64)], [numbers("w", divisor)])


def span(inputs, before=()):
    """A Range whose limit is a list of one number, as it stands or passed on as last."""
    last = "last" if before else "limit"
    constants = [field(2, INT64) + field(8, name) + field(9, struct.pack("<q", v)) for name, v in
                 (("start", 0), ("delta", 1))] + ([] if inputs else [numbers("limit", [5])])
    return model([*before, node("Range", ["start", last, "delta"], ["y"], "span")], inputs,
                 [value_info("y", ["n"], INT64)], constants)


def linear(intercepts):
    outputs = [(value_info("l", [1], INT64), "l"), (value_info("s", [1, 2]), "s")]
    return learned("LinearClassifier", [value_info("x", [1, 1])], outputs,
                   ints("classlabels_ints", [0, 1]) + floats("coefficients", [1, -1]) + intercepts)


def sequence_length(constants):
    """How many parts a split of no elements gives, whose lengths are constant or come with a run."""
    nodes = [node("SplitToSequence", ["x", "split"], ["parts"], "cut"),
             node("SequenceLength", ["parts"], ["y"])]
    inputs = [value_info("x", [0])] + ([] if constants else [value_info("split", [0], INT64)])
    return model(nodes, inputs, [value_info("y", [], INT64)], constants)


def empty_constant():
    body = graph("body", [node("Constant", [], ["v"])], [], [value_info("v", [2])])
    full = graph("body", [node("Identity", ["x"], ["v"])], [], [value_info("v", [2])])
    choice = node("If", ["c"], ["y"], "choice")
    for name, branch in (("then_branch", full), ("else_branch", body)):
        choice += field(5, field(1, name) + field(6, branch) + field(20, 5))
    return wrapped(graph("g", [choice], [value_info("c", [], 9), X], [Y]))


def single_nodes():
    """A fault in the inputs or attributes of one node."""
    four, sizes = ("x", [1, 1, 2, 2]), ("sizes", [], INT64)
    labels = field(5, field(1, "classlabels_strings") + field(9, "a") + field(9, "b") + field(20, 8))
    return {
        "parts": one("Split", [("x", [2])], [2], num_outputs=1),
        "no_parts": one("Split", [("x", [2])], [2]),
        "fill": one("ConstantOfShape", [("x", [1], INT64)], ["n"]),
        "fill_scalar": one("ConstantOfShape", [("x", [], INT64)], ["n"]),
        "window": one("HannWindow", [("x", [], INT64)], ["n"]),
        "window_list": one("HannWindow", [("x", [1], INT64)], ["n"]),
        "holes": one("Clip", [("x", [2]), ("", [])], [2]),
        "too_many_holes": one("Clip", [("x", [2]), ("", []), ("", []), ("", [])], [2]),
        "list_hole": one("Concat", [("x", [2]), ("", [])], [2], axis=0),
        "auto_pad": one("MaxPool", [four], [1, 1, 2, 2], auto_pad="VALID\0", kernel_shape=[1, 1]),
        "reshape": one("Reshape", [("x", [2]), ("to", [1, 1], INT64)], [2]),
        "resize": one("Resize", [four, ("", []), ("", []), sizes], ["a", "b", "c", "d"]),
        "dropout": one("Dropout", [("x", [2]), ("ratio", [1])], [2]),
        "spectrum": one("DFT", [("x", [1, 8, 2])], [1, 5, 2], onesided=1),
        "cache": one("TensorScatter", [("x", [1, 2, 4, 3]), ("new", [1, 2, 1, 5])], [1, 2, 4, 3], 24),
        "boxes": one("NonMaxSuppression", [("x", [1, 1, 4]), ("scores", [1, 1, 1])], ["n", 3],
                     dtype=INT64, center_point_box=7),
        "early_axis": one("DequantizeLinear", [("x", [3, 2], INT8), ("s", [3])], [3, 2], opset=11,
                          axis=0),
        "early_norm": one("LayerNormalization", [("x", [2]), ("w", [2])], [2], opset=16),
        "group_norm": one("GroupNormalization", [("x", [1, 2, 3]), ("w", [1]), ("b", [1])], [1, 2, 3], 18,
                          num_groups=1),
        "groups": one("GroupNormalization", [("x", [1, 2, 3]), ("w", [2]), ("b", [2])], [1, 2, 3], 21,
                      num_groups=3),
        "group_scale": one("GroupNormalization", [("x", [1, 2, 3]), ("w", [2]), ("b", [2])], [1, 2, 3], 18,
                           num_groups=1),
        "affine": one("Affine", [("x", [2])], [2], 9),
        "affine_late": one("Affine", [("x", [2])], [2], 10),
        "empty_constant": empty_constant(),
        "ensemble": ensemble(),
        "ensemble_loop": ensemble(((0, 0), (1, 1))),
        "ensemble_tracks": ensemble(tracks=[0, 0]),
        "ensemble_no_tracks": ensemble(tracks=[]),
        "axis_twice": one("Resize", [four, ("", []), ("scales", [2])], ["a", "b", "c", "d"], axes=[3, 3]),
        "rotary": one("RotaryEmbedding", [("x", [1, 1, 2, 4]), ("cos", [1, 2, 2]), ("sin", [1, 2, 2])],
                      [1, 1, 2, 4], 23, rotary_embedding_dim=(1 << 64) - 4),
        "fold": one("Col2Im", [("x", [1, 5, 5]), ("image", [2], INT64), ("block", [2], INT64)],
                    ["n", "c", "h", "w"], dilations=[1, 1, 1]),
        "slice_axes": one("Slice", [("x", [4, 4])] + [(name, [size], INT64) for name, size in
                                                      (("starts", 2), ("ends", 2), ("axes", 1))], ["a", "b"]),
        "past": one("Attention", [("q", [2, 3, 4, 8]), ("k", [2, 3, 6, 8]), ("v", [2, 3, 6, 8]), ("", []),
                                  ("past_k", [2, 3, 12, 8]), ("past_v", [2, 12, 12, 8])], [2, 3, 4, 8], 23),
        "split_none": one("SplitToSequence", [("x", [4]), ("split", [0], INT64)], [4]),
        "pattern": model([node("RegexFullMatch", ["x"], ["y"], "match") +
                          field(5, field(1, "pattern") + field(4, b"a\xff") + field(20, 3))],
                         [value_info("x", [1], STRING)], [value_info("y", [1], BOOL)], opset=20),
        "ceil": one("MaxPool", [four], [1, 1, 2, 2], ceil_mode=2, kernel_shape=[1, 1]),
        "features": learned("FeatureVectorizer", [value_info("x", [2, 2, 2])],
                            [(value_info("y", [2, 3]), "y")], ints("inputdimensions", [3])),
        "two_types": model([node("Conv", ["x", "w"], ["y"], "conv")], [], [value_info("y", ["n", "c", "h", "w"])],
                           [wide("x", [1, 1, 7, 5], FLOAT), wide("w", [1, 1, 3, 3], INT32)]),
        "first_left_out": one("TopK", [("x", [2]), ("k", [1], INT64)], [1], dtype=INT64, outputs=["", "y"]),
        "both_sizes": one("Resize", [four, ("", []), ("scales", [4]), ("sizes", [4], INT64)], ["a", "b", "c", "d"]),
        "stride": one("Col2Im", [("x", [1, 4, 9]), ("image", [2], INT64), ("block", [2], INT64)],
                      ["n", "c", "h", "w"], strides=[1, MINUS_ONE]),
        "dilation": one("Col2Im", [("x", [1, 4, 9]), ("image", [2], INT64), ("block", [2], INT64)],
                        ["n", "c", "h", "w"], dilations=[0, 1]),
        "crop": one("CenterCropPad", [("x", [4, 4]), ("shape", [1000], INT64)], ["a", "b"]),
        "split_nothing": sequence_length([numbers("split", [])]),
        "split_of_run": sequence_length([]),
        "window_of_weight": one("ConvTranspose", [("x", [1, 1, 8, 8]), ("w", [1, 1, 3, 3])],
                                ["n", "c", "h", "w"], kernel_shape=[5, 3]),
        "storage": one("MaxPool", [four], [1, 1, 2, 2], storage_order=2, kernel_shape=[1, 1]),
        "range_stated": span([]),
        "range_given": span([value_info("limit", [1], INT64)]),
        "range_computed": span([], [node("Identity", ["limit"], ["last"])]),
        "no_intercepts": linear(b""),
        "intercepts": linear(floats("intercepts", [1, 2])),
        "divisor": divided("Div", [1, 0]),
        "modulus": divided("Mod", [1, 0]),
        "divisible": divided("Div", [1, 2]),
        "axis_of_end": one("Unsqueeze", [("x", [2])], [2, 1], 9, axes=[MINUS_ONE]),
        "axis_of_end_later": one("Unsqueeze", [("x", [2])], [2, 1], 11, axes=[MINUS_ONE]),
        "twice_output": model([ADD], [X], [Y, value_info("y", [2], INT64)], [W]),
        "twice_output_shape": model([ADD], [X], [Y, value_info("y", ["n"])], [W]),
        "untyped_inside": wrapped(graph("g", [ADD], [X], [Y], [W]) +
                                  field(13, value_info("v", [2], 0))),
        "labels": zip_map(labels),
        "no_labels": zip_map(b""),
        "kernel": vectors([0.5, 0, 3]),
        "kernel_params": vectors([0.5]),
    }


def models():
    two = W + packed_floats([3, 4])
    doubled = node("Add", ["a", "a"], ["b"])
    referring = doubled + field(5, field(1, "axis") + field(21, "missing") + field(20, 2))
    relu = node("Relu", ["w"], ["v"])
    constant = node("Constant", [], ["v"]) + tensor("value", INT64, [2], struct.pack("<2q", 1, 2))
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
        "function_twice": function([doubled], imports=(("", 17), ("", 17))),
        "function_constant": function([constant, node("Cast", ["v"], ["b"], attributes={"to": 1})],
                                      inputs=(), imports=(("", 8),)),
        "function_versions": function([doubled], imports=(("", 17), ("", 13))),
        "no_location": model([ADD], [X], [Y], [initializer("w", [2], [])[:-2] + field(14, 1)]),
        "wrong_rank": model([relu, node("Add", ["x", "v"], ["y"])], [X], [value_info("y", [1, 2])],
                            [W]),
        "initializer_fit": wrapped(graph("g", [ADD], [X, value_info("w", [3])], [Y], [W]))[2:] +
        field(1, 3),
    }


folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
for name, data in (models() | single_nodes()).items():
    (folder / f"{name}.onnx").write_bytes(data)
