"""How far the values of a file can be compared at all (see make_parity.py).

movement() moves every float constant and input by one unit in the last place and looks how far
onnxruntime's own outputs go: rounding to bytes, thresholds and maxima turn a last bit into steps,
and those into more at the next rounding. No two implementations with another order of sums are
closer than that.

in_parts() makes the file that can be compared all the same: every quantized value becomes a graph
input that takes onnxruntime's value and an output that must give it again, so that a step taken in
one part can't spread to the next.
"""
import re

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SEEDS = 4
QUANTIZERS = re.compile("QuantizeLinear$|DynamicQuantizeLinear$|QLinear|QGemm$")
INSIDE = re.compile("DynamicQuantizeMatMul$|DynamicQuantizeLSTM$")  # these quantize input 0
FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE)


def nudged(value, rng):
    """Every number a unit up or down; whole numbers (counts, scales of Resize, limits) stay."""
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
        return value
    inf = np.asarray(np.inf, value.dtype)
    with np.errstate(over="ignore"):
        moved = np.where(rng.random(value.shape) < 0.5, np.nextafter(value, inf),
                         np.nextafter(value, -inf)).astype(value.dtype)
    return np.where((value == np.rint(value)) | ~np.isfinite(moved), value, moved)


def all_graphs(graph):
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from all_graphs(attribute.g)


def movement(path, scratch, sets, plain, run, distance):
    """The largest distance (in tolerances) between `plain`, the outputs of the file at `path`, and
    those of its nudged copies; and whether all agree. run(path, sets) gives outputs, distance(a, b)
    a pair."""
    worst, agree = 0.0, True
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        model = onnx.load(str(path))
        for graph in all_graphs(model.graph):
            for tensor in graph.initializer:
                if tensor.data_type in FLOATS:
                    array = nudged(numpy_helper.to_array(tensor), rng)
                    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
        onnx.save(model, str(scratch))
        moved = run(scratch, [{k: nudged(v, rng) for k, v in feeds.items()} for feeds in sets])
        for one, other in zip(moved, plain, strict=True):
            far, near = distance(one, other)
            worst, agree = max(worst, far), agree and near
    scratch.unlink(missing_ok=True)
    return worst, agree


def cuts(model):
    """Names of the values of the main graph that nodes quantize, graph outputs not."""
    outputs = {o.name for o in model.graph.output}
    made = {name for node in model.graph.node for name in node.output}
    names = [name for node in model.graph.node if QUANTIZERS.match(node.op_type)
             for name in node.output if name and name not in outputs]
    names += [node.input[0] for node in model.graph.node if INSIDE.match(node.op_type) and
              node.input[0] in made - outputs]
    return list(dict.fromkeys(names))


def with_outputs(model, names):
    """A copy that also gives the values `names`."""
    more = onnx.ModelProto()
    more.CopyFrom(model)
    more.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    return more


def in_parts(model, values):
    """A copy of the model that takes each of `values` (name to array) and gives NAME.made."""
    parts = onnx.ModelProto()
    parts.CopyFrom(model)
    graph = parts.graph
    for node in graph.node:
        for k, name in enumerate(node.output):
            if name in values:
                node.output[k] = f"{name}.made"
    for name, array in values.items():
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        graph.input.append(helper.make_tensor_value_info(name, kind, array.shape))
        graph.output.append(helper.make_tensor_value_info(f"{name}.made", kind, array.shape))
    made = [v for v in graph.value_info if v.name not in values]
    del graph.value_info[:]
    graph.value_info.extend(made)
    return parts
