#!/usr/bin/env python3
"""An ONNX model as a .tflite file, so that LiteRT can be timed on the same network.

usage: tflite.py FOLDER OUT

FOLDER is as worker.py's. ort-optimize (ORT_BIN, default build/bin) simplifies the model first and
fixes its shapes to those of the inputs. The file's tensors have channels last; the names of its
inputs and outputs end in "|" and the axes of the ONNX value in the order of the tensor's, so that
litert.py turns arrays outside of what is timed. Exit status 1: the reason is on stdout.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from onnx import helper

if __name__ == "__main__":
    sys.path[0] = str(pathlib.Path(__file__).resolve().parent.parent)

from peers import forms, tflite_forms, tflite_layers    # these two fill FORMS
from peers.tflite_graph import FORMS, LAST, Graph, Value

ROOT = pathlib.Path(__file__).resolve().parents[3]
OPSET = 20                          # the forms are those of this version
PASSES = "hard_swish,gelu"          # what TFLite has an operator for
NUMBERS = (np.float32, np.float16)  # float16 goes in and out as float32


def optimize(model, out, *options):
    tool = pathlib.Path(os.environ.get("ORT_BIN", ROOT / "build/bin"), "ort-optimize")
    done = subprocess.run([tool, model, "-o", out, "-q", "--no-verify", *options],
                          capture_output=True, text=True)
    if done.returncode:
        raise forms.Absent((done.stderr or "ort-optimize failed").strip().splitlines()[0])


def simplified(folder, out):
    """A folder with the model as level 1 leaves it, for inputs of one size, in one opset."""
    shapes = []
    for name, array in forms.read_inputs(folder).items():
        shapes += ["--shape", "%s:%s" % (name, "x".join(map(str, array.shape)))]
    optimize(folder / "model.onnx", out / "fixed.onnx", "--level", "1", *shapes)
    optimize(out / "fixed.onnx", out / "model.onnx", "--opset", str(OPSET), "--passes", PASSES)
    return out


def input_order(graph, name, rank):
    """Channels last, unless the graph itself turns its input."""
    turned = any(u.op_type in ("Transpose", "Reshape") for u in graph.users.get(name, []))
    return LAST.get(rank, tuple(range(rank))) if not turned else tuple(range(rank))


def add_input(graph, info):
    kind = info.type.tensor_type
    shape = [d.dim_value for d in kind.shape.dim]
    dtype, units = helper.tensor_dtype_to_np_dtype(kind.elem_type), None
    order = input_order(graph, info.name, len(shape))
    if dtype == graph.byte:
        units = graph.units_of_input(info.name)
    elif dtype not in NUMBERS:
        raise forms.Absent("an input of %s" % dtype)
    tensor = graph.file.tensor([shape[a] for a in order],
                               graph.byte if units else np.float32, units)
    graph.values[info.name] = Value(tensor, tuple(shape), order, units, False)
    return tensor, label(info.name, order)


def add_output(graph, info):
    dtype = helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
    value = graph.value(info.name)
    if dtype in NUMBERS:
        value = graph.as_numbers(value)
    elif dtype != graph.byte:
        raise forms.Absent("an output of %s" % dtype)
    return value.tensor, label(info.name, value.order)


def label(name, order):
    return "%s|%s" % (name, ",".join(map(str, order)))


def write_graph(graph):
    for kind in {n.op_type for n in graph.nodes} - set(FORMS):
        raise forms.Absent("operator %s" % kind)
    ends = [[add_input(graph, i) for i in graph.graph.input if i.name not in graph.constants]]
    for node in graph.nodes:
        if id(node) not in graph.done:
            FORMS[node.op_type](graph, node)
    ends.append([add_output(graph, o) for o in graph.graph.output])
    if len({tensor for tensor, _ in ends[0] + ends[1]}) < len(ends[0] + ends[1]):
        raise forms.Absent("an input or output that is another one")     # a tensor has one name
    for tensor, name in ends[0] + ends[1]:
        graph.file.tensors[tensor].name = name
    return graph.file.content(*([tensor for tensor, _ in end] for end in ends))


def write(folder):
    """The bytes of the file, or Absent."""
    with tempfile.TemporaryDirectory() as own:
        return write_graph(Graph(simplified(pathlib.Path(folder), pathlib.Path(own))))


def main():
    folder, out = sys.argv[1:3]
    try:
        content = write(folder)
    except forms.Absent as reason:
        print(reason)
        return 1
    pathlib.Path(out).write_bytes(content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
