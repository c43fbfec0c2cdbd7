#!/usr/bin/env python3
"""Write models whose inputs and outputs are optional values and sequences, each with a set of data, after the
kinds of ONNX's node tests; and a model without inputs.

usage: optional_sets.py DIR

Each is DIR/NAME/model.onnx with DIR/NAME/test_data_set_0.
"""
import pathlib
import struct
import sys

import fixtures as f

TENSOR, SEQUENCE = 1, 3  # element types of OptionalProto and SequenceProto
folder = pathlib.Path(sys.argv[1])


def tensor_type(dims=None, dtype=f.FLOAT):
    shape = b"" if dims is None else f.field(2, b"".join(f.field(1, f.field(1, d)) for d in dims))
    return f.field(1, f.field(1, dtype) + shape)


def sequence_of(kind):
    return f.field(4, f.field(1, kind))


def optional_of(kind):
    return f.field(9, f.field(1, kind))


def value(name, kind):
    return f.field(1, name) + f.field(2, kind)


def tensor(values, dims=None, dtype=f.FLOAT):
    dims = [len(values)] if dims is None else dims
    letter = {f.FLOAT: "f", f.INT64: "q", f.BOOL: "?"}[dtype]
    return b"".join(f.field(1, d) for d in dims) + f.field(2, dtype) + f.field(
        9, struct.pack(f"<{len(values)}{letter}", *values))


def sequence(tensors):
    return f.field(2, TENSOR) + b"".join(f.field(3, t) for t in tensors)


def optional(kind, content=None):
    return f.field(2, kind) + (b"" if content is None else f.field({TENSOR: 3, SEQUENCE: 5}[kind], content))


def type_attribute(kind):
    return f.field(5, f.field(1, "type") + f.field(14, kind) + f.field(20, 13))


def constant(name, content):
    return f.node("Constant", [], [name]) + f.field(5, f.field(1, "value") + f.field(5, content) + f.field(20, 4))


def graph(name, nodes, inputs, outputs):
    return b"".join(f.field(1, n) for n in nodes) + f.field(2, name) + b"".join(
        f.field(11, i) for i in inputs) + b"".join(f.field(12, o) for o in outputs)


def write(name, nodes, inputs, outputs, given, expected, opset=18):
    data = folder / name / "test_data_set_0"
    data.mkdir(parents=True)
    (folder / name / "model.onnx").write_bytes(f.model(nodes, inputs, outputs, opset=opset))
    for prefix, files in (("input", given), ("output", expected)):
        for i, content in enumerate(files):
            (data / f"{prefix}_{i}.pb").write_bytes(content)


def choice():
    """An If whose branches give an empty optional sequence and one with a value."""
    kind = optional_of(sequence_of(tensor_type([3])))
    empty = graph("none", [f.node("Optional", [], ["nothing"]) + type_attribute(sequence_of(tensor_type([3])))],
                  [], [value("nothing", kind)])
    full = graph("some", [constant("x", tensor([1, 2, 3])), f.node("SequenceConstruct", ["x"], ["list"]),
                          f.node("Optional", ["list"], ["something"])], [], [value("something", kind)])
    node = f.node("If", ["empty"], ["out"]) + f.body("then_branch", empty) + f.body("else_branch", full)
    inputs = [value("empty", tensor_type([], f.BOOL))]
    write("if_some", [node], inputs, [value("out", kind)], [tensor([False], [], f.BOOL)],
          [optional(SEQUENCE, sequence([tensor([1, 2, 3])]))])
    write("if_none", [node], inputs, [value("out", kind)], [tensor([True], [], f.BOOL)], [optional(SEQUENCE)])


def loop():
    """A Loop that is handed no sequence, and adds to one."""
    kind = sequence_of(tensor_type())
    start = graph("start", [constant("zero", tensor([0], [])), f.node("SequenceConstruct", ["zero"], ["first"])],
                  [], [value("first", kind)])
    go_on = graph("go_on", [f.node("OptionalGetElement", ["state"], ["present"])], [], [value("present", kind)])
    body = graph("body", [
        f.node("Identity", ["go"], ["still"]), f.node("OptionalHasElement", ["state"], ["there"]),
        f.node("If", ["there"], ["list"]) + f.body("then_branch", go_on) + f.body("else_branch", start),
        constant("five", tensor([5, 6])), f.node("SequenceInsert", ["list", "five"], ["longer"])],
        [value("number", tensor_type([], f.INT64)), value("go", tensor_type([], f.BOOL)),
         value("state", optional_of(kind))],
        [value("still", tensor_type([], f.BOOL)), value("longer", kind)])
    write("loop_none", [f.node("Loop", ["times", "go_in", "state_in"], ["out"]) + f.body("body", body)],
          [value("times", tensor_type([], f.INT64)), value("go_in", tensor_type([], f.BOOL)),
           value("state_in", optional_of(kind))], [value("out", kind)],
          [tensor([3], [], f.INT64), tensor([True], [], f.BOOL), optional(SEQUENCE)],
          [sequence([tensor([0], [])] + 3 * [tensor([5, 6])])])


def elements():
    """What an optional input holds, and whether it does."""
    some, numbers = tensor([1, 2, 3, 4]), tensor_type([4])
    write("get_tensor", [f.node("OptionalGetElement", ["x"], ["out"])], [value("x", optional_of(numbers))],
          [value("out", numbers)], [optional(TENSOR, some)], [some])
    write("get_sequence", [f.node("OptionalGetElement", ["x"], ["out"])],
          [value("x", optional_of(sequence_of(numbers)))], [value("out", sequence_of(numbers))],
          [optional(SEQUENCE, sequence([some, some]))], [sequence([some, some])])
    yes = [value("out", tensor_type([], f.BOOL))]
    has = [f.node("OptionalHasElement", ["x"], ["out"])]
    write("has_optional", has, [value("x", optional_of(numbers))], yes, [optional(TENSOR, some)],
          [tensor([True], [], f.BOOL)])
    write("has_none", has, [value("x", optional_of(numbers))], yes, [optional(TENSOR)],
          [tensor([False], [], f.BOOL)])
    write("has_tensor", has, [value("x", numbers)], yes, [some], [tensor([True], [], f.BOOL)])


choice()
loop()
elements()
write("no_inputs", [constant("a", tensor([1, 2])), f.node("Neg", ["a"], ["out"])], [],
      [value("out", tensor_type([2]))], [], [tensor([-1, -2])])
