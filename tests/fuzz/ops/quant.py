"""quant.py - quantization."""
import ml_dtypes
import numpy as np

from . import formulas
from .case import Redraw, Tolerance, np_type, op, type_name

INTEGERS = ["int8", "uint8", "int16", "uint16", "int4", "uint4", "int2", "uint2"]
FLOAT8 = ["float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"]


def layout(g, shape):
    """(shape of the scale, axis, block size): one for all, per axis, or in blocks."""
    axis = g.int(-len(shape), len(shape) - 1) if shape else 0
    how = g.pick(["one", "one", "axis", "block"])
    if how == "one" or not shape:
        return (), None, 0
    if not g.has("axis"):
        return (), None, 0
    if how == "block" and g.has("block_size") and shape[axis] > 1:
        block = g.pick([b for b in range(2, 9) if b <= shape[axis]])
        out = list(shape)
        out[axis] = -(-shape[axis] // block)
        return tuple(out), axis, block
    return (shape[axis],), axis, 0


def apply(g, axis, block):
    if axis is not None and (axis not in (1,) or g.chance()):
        g.attrs["axis"] = axis
    if block:
        g.attrs["block_size"] = block


@op("QuantizeLinear")
def quantize(g):
    g.promote = False
    dtype = g.dtype(g.schema.inputs[0].type_str, only=["float", "int32", "float16", "bfloat16"])
    g.empty_ok = False
    shape = g.shape()
    many, axis, block = layout(g, shape)
    apply(g, axis, block)
    if many and shape[axis if axis is not None else 0] == 0:
        raise Redraw
    variables = [i.type_str for i in g.schema.inputs]
    scale_type = dtype if variables[1] == variables[0] else g.dtype(variables[1], only=["float"]) \
        if variables[1].startswith("T") else np.dtype(np.float32)
    if dtype == np.int32 and scale_type == dtype:
        raise Redraw
    zero = g.dtype(variables[2], only=INTEGERS + FLOAT8)
    x = g.real(dtype, shape, special=False, low=-40, high=40) if dtype.kind != "i" else \
        g.whole(dtype, shape, low=-4000, high=4000)
    scale = g.rng.choice([0.25, 0.5, 1.0, 2.0], many)  # exact quotients: the ties are seen
    if g.chance(0.3):
        scale = g.rng.uniform(0.1, 1, many)
    g.input(x)
    g.input(np.asarray(scale).astype(scale_type))
    if type_name(zero) in FLOAT8:
        point = np.zeros(many, zero)
        g.attr("saturate", [0, 1])
    else:
        point = g.whole(zero, many, extreme=False, low=0, high=1 if ml_dtypes.iinfo(zero).max < 9
                        else 20)
    if zero == np.uint8 and g.chance(0.3):
        g.input(None)
    else:
        if g.has("output_dtype") and g.chance(0.2):
            from onnx import helper
            g.attrs["output_dtype"] = helper.np_dtype_to_tensor_dtype(zero)
        g.input(point)
    if g.has("precision") and dtype == np.float32 and g.chance(0.2):
        g.attrs["precision"] = 1
    # A quotient rounded as IEEE 754 has it, then to even: there is one result. In small floats the
    # quotient may be formed in float or in the type.
    g.tolerance = Tolerance(steps=0 if dtype == np.float32 or np.all(np.log2(scale) % 1 == 0) else 1)
    g.outputs = 1
    g.types.setdefault(g.schema.outputs[0].type_str, f"tensor({type_name(zero)})")
    if block and shape[axis] % block:  # the peers take whole blocks
        if type_name(zero) in FLOAT8 or dtype != np.float32:
            raise Redraw
        info = ml_dtypes.iinfo(zero)
        g.peers, g.formula = ("formula",), lambda x, s, z=0: [np.clip(np.rint(
            x / formulas.spread(s, shape, axis, block).astype(np.float32)) +
            formulas.spread(z, shape, axis, block), int(info.min), int(info.max))]


@op("DequantizeLinear")
def dequantize(g):
    g.promote = False
    variables = [i.type_str for i in g.schema.inputs]
    dtype = g.dtype(variables[0], only=INTEGERS + FLOAT8 + ["int32"])
    g.empty_ok = False
    shape = g.shape()
    many, axis, block = layout(g, shape)
    apply(g, axis, block)
    scale_type = g.dtype(variables[1], only=["float", "float16"]) \
        if variables[1].startswith("T") else np.dtype(np.float32)
    if type_name(dtype) in FLOAT8:
        x = g.rng.uniform(-40, 40, shape).astype(dtype)
    else:
        x = g.values(dtype, shape)
        if dtype == np.int32 and scale_type == np.float16:
            x = g.whole(dtype, shape, low=-500, high=500)
    g.input(x)
    g.input(g.rng.choice([0.25, 0.5, 1.0, 0.1], many).astype(scale_type))
    if dtype == np.int32 or type_name(dtype) in FLOAT8:
        point = np.zeros(many, dtype) if g.chance() else None
    else:
        point = g.values(dtype, many) if g.chance(0.7) else None
    g.input(point)
    out = g.schema.outputs[0].type_str
    g.types.setdefault(out, f"tensor({type_name(scale_type)})" if out.startswith("T")
                       else "tensor(float)")
    g.tolerance = Tolerance(ulps=1)  # one product
    if block and shape[axis] % block:
        g.peers, g.formula = ("formula",), lambda x, s, z=0: [
            (formulas.double(x) - formulas.spread(z, shape, axis, block)) *
            formulas.spread(s, shape, axis, block)]


@op("DynamicQuantizeLinear")
def dynamic_quantize(g):
    g.regime = "plain"
    g.empty_ok = False
    g.input(g.values(np.dtype(np.float32), g.shape(low=1), special=False))
    g.types.setdefault("T2", "tensor(uint8)")
    # The range over 255, and each quotient by it: at a half the other neighbour may come out.
    g.tolerance = Tolerance(steps=1, ulps=2)


assert np_type
