"""sweep.py - what attack.py draws, one after another: every attribute of the operator tests at each end of
its range, every recorded input empty along each axis, of extreme numbers and of other ranks.
"""
import numpy
import onnx
from onnx import AttributeProto, TensorProto, numpy_helper

ENDS = [-(1 << 63), (1 << 63) - 1, (1 << 32) + 1, 1 << 31, -1, 0]
REALS = [numpy.inf, -numpy.inf, numpy.nan, 3e38, -3e38, 1e-45, 0.0, -1.0]
NODES = 4 # of a model, from its first one on


def at_end(rng, attribute, end):
    """The attribute at this end; False where it has none."""
    if attribute.type == AttributeProto.INT:
        attribute.i = end
    elif attribute.type == AttributeProto.FLOAT:
        attribute.f = rng.choice(REALS)
    elif attribute.type == AttributeProto.INTS and attribute.ints:
        one = rng.randrange(len(attribute.ints))
        for k in range(len(attribute.ints)) if rng.random() < 0.5 else [one]:
            attribute.ints[k] = end
    else:
        return False
    return True


def attributes(rng, model):
    """Models, each with one attribute at an end; shapes of outputs left out, and half of those of inputs."""
    for i, node in enumerate(model.graph.node[:NODES]):
        for j in range(len(node.attribute)):
            for end in ENDS:
                made = onnx.ModelProto()
                made.CopyFrom(model)
                if not at_end(rng, made.graph.node[i].attribute[j], end):
                    break
                for value in [*made.graph.output, *(made.graph.input if rng.random() < 0.5 else [])]:
                    if value.type.HasField("tensor_type"):
                        value.type.tensor_type.ClearField("shape")
                yield made


def values(rng, tensor):
    """Tensors in its place, of the same element type."""
    dims, kind = list(tensor.dims), tensor.data_type
    yield TensorProto(dims=[0], data_type=kind)
    for axis in range(len(dims)):
        yield TensorProto(dims=dims[:axis] + [0] + dims[axis + 1:], data_type=kind)
    if kind == TensorProto.STRING:
        return
    array = numpy_helper.to_array(tensor)
    if array.dtype.kind not in "fiu":
        return
    info = numpy.iinfo(array.dtype) if array.dtype.kind in "iu" else None
    for number in [info.min, info.max, min(info.max, 1 << 31), 0, 1] if info else REALS:
        with numpy.errstate(over="ignore"):
            yield numpy_helper.from_array(numpy.full_like(array, number))
            one = numpy.array(array)
            if one.size > 1:
                one.reshape(-1)[rng.randrange(one.size)] = number
                yield numpy_helper.from_array(one)
    yield numpy_helper.from_array(array.reshape((1,) + array.shape))
    yield numpy_helper.from_array(numpy.ascontiguousarray(array.reshape(-1)))
