"""ms_quant.py - operators of com.microsoft on 8 bits and fewer."""
from dataclasses import replace

import ml_dtypes
import numpy as np

from . import bounds, formulas
from .case import Redraw, Tolerance, op
from .linear import fits, matmul_shapes, window, window_attrs
from .ms_attention import feed, small
from .quant import dequantize, quantize
from .schemas import MS

F32 = np.dtype(np.float32)


@op("QuantizeLinear", "DequantizeLinear", domain=MS)
def as_in_onnx(g):
    """The operators of opset 21 under another domain; types that onnxruntime's Python can't hand
    over go to the reference evaluator as those."""
    (quantize if g.name[0] == "Q" else dequantize)(g)
    g.form_of["reference"] = {"domain": "", "opset": 21}


def scale(g, low=0.01, high=0.1, shape=()):
    return np.asarray(g.rng.uniform(low, high, shape)).astype(F32)


def point(g, dtype, shape=()):
    return g.whole(dtype, shape, low=-128, high=255)


def whole8(g, dtype, shape):
    return g.whole(dtype, shape, low=-128, high=255)


def one_step(g):
    """Ours and the peer round the same number, computed in float in another order: where it lies
    within its float error of a half they may take different neighbours."""
    g.promote = False
    g.tolerance = Tolerance(steps=1)


@op("QLinearAdd", "QLinearMul", domain=MS)
def qlinear_binary(g):
    dtype = g.dtype("T")
    full = g.shape()
    a, b = (full, g.narrower(full)) if g.chance(0.6) else (g.narrower(full), full)
    feed(g, whole8(g, dtype, a), scale(g), point(g, dtype), whole8(g, dtype, b), scale(g),
         point(g, dtype), scale(g, 0.02, 1), point(g, dtype))
    one_step(g)


@op("QLinearLeakyRelu", "QLinearSigmoid", domain=MS)
def qlinear_unary(g):
    dtype = g.dtype("T")
    g.attr("alpha", [0.01, 0.5], 1)
    zero = g.chance(0.8)
    feed(g, whole8(g, dtype, g.shape()), scale(g), point(g, dtype) if zero else None,
         scale(g, 0.004, 0.1), point(g, dtype) if zero else None,
         fixed=(1, 2, 3, 4) if g.chance() else ())
    one_step(g)
    alpha = g.attrs.get("alpha")

    def formula(x, sx, zx, sy, zy=None):
        real = (x.astype(np.float64) - (0 if zx is None else zx)) * sx
        real = 1 / (1 + np.exp(-real)) if alpha is None else np.where(real < 0, alpha * real, real)
        info = np.iinfo(dtype)
        return [np.clip(np.rint(real / sy) + (0 if zy is None else zy), info.min, info.max)]
    g.formula = formula
    if not zero:
        g.peers = ("formula",)  # onnxruntime ends the process when zero points are left out


@op("QLinearSoftmax", domain=MS)
def qlinear_softmax(g):
    dtype = g.dtype("T")
    shape = g.shape(low=1, empty=False)
    opset = g.pick([12, 13])
    g.attrs |= {"opset": opset, "axis": g.int(-len(shape), len(shape) - 1)}
    feed(g, whole8(g, dtype, shape), scale(g, 0.01, 0.3), point(g, dtype),
         np.array(1 / 256, F32), np.array(0 if dtype == np.uint8 else -128, dtype),
         fixed=(1, 2, 3, 4))
    one_step(g)


@op("QLinearWhere", domain=MS)
def qlinear_where(g):
    dtype = g.dtype("T")
    full = g.shape(low=1)
    feed(g, g.values(bool, g.narrower(full)), whole8(g, dtype, full), scale(g), point(g, dtype),
         whole8(g, dtype, g.narrower(full)), scale(g), point(g, dtype), scale(g, 0.02, 0.2),
         point(g, dtype), fixed=(2, 3, 5, 6, 7, 8))
    one_step(g)


@op("QLinearConcat", domain=MS)
def qlinear_concat(g):
    dtype = g.dtype("T8")
    shape = list(g.shape(low=1))
    axis = g.int(-len(shape), len(shape) - 1)
    g.attrs["axis"] = axis
    values = [scale(g, 0.02, 0.2), point(g, dtype)]
    for _ in range(g.int(1, 4)):
        shape[axis] = g.dim()
        if np.prod(shape) > 4000:
            raise Redraw
        values += [whole8(g, dtype, shape), scale(g), point(g, dtype)]
    g.inputs = []
    for k, v in enumerate(values):
        g.input(v, constant=True if k < 2 or k % 3 != 2 else None)
    one_step(g)


def pooled(g, last):
    rank = g.pick([1, 2, 2, 3])
    kernel, strides, dilations, pads, sizes = window(g, rank)
    if not window_attrs(g, kernel, strides, dilations, pads, 1) and \
            not fits(sizes, kernel, dilations):
        raise Redraw
    if "SAME" in g.attrs.get("auto_pad", "") and any(
            k < s for k, s in zip(kernel, strides, strict=True)):
        raise Redraw
    channels = (g.int(1, 2), g.pick([1, 3, 8, 17]))
    return (channels[0], *sizes, channels[1]) if last else (*channels, *sizes)


@op("QLinearAveragePool", "QLinearGlobalAveragePool", domain=MS)
def qlinear_pool(g):
    dtype = g.dtype("T")
    last = g.chance()
    if last:
        g.attrs["channels_last"] = 1
    if g.name == "QLinearAveragePool":
        g.attr("count_include_pad", [0, 1])
        shape = pooled(g, last)
    else:
        shape = g.shape(low=3, high=4, empty=False)
    feed(g, whole8(g, dtype, shape), scale(g), point(g, dtype), scale(g), point(g, dtype),
         fixed=(1, 2, 3, 4) if g.chance() else ())
    one_step(g)


@op("NhwcMaxPool", domain=MS)
def nhwc_max_pool(g):
    dtype = g.dtype("T")
    g.input(whole8(g, dtype, pooled(g, True)))
    attrs = g.attrs
    g.formula = lambda x: [np.moveaxis(formulas.max_pool(np.moveaxis(x, -1, 1), attrs), 1, -1)]


@op("QLinearConv", domain=MS)
def qlinear_conv(g):
    t1, t2 = g.dtype("T1"), g.dtype("T2")
    g.types["T3"] = g.types["T1"]
    g.dtype("T4")
    rank = g.pick([1, 2, 2])
    kernel, strides, dilations, pads, sizes = window(g, rank)
    if not window_attrs(g, kernel, strides, dilations, pads) and not fits(sizes, kernel, dilations):
        raise Redraw
    groups, inner, outer = g.pick([1, 1, 2, 3]), g.pick([1, 2, 4, 5]), g.pick([1, 2, 8, 9])
    if g.chance(0.2):
        groups, inner, outer = g.pick([4, 8, 17]), 1, 1
    if groups > 1:
        g.attrs["group"] = groups
    last = g.chance(0.6)
    if last:
        g.attrs["channels_last"] = 1
    channels = groups * inner
    shape = (g.int(1, 2), *sizes, channels) if last else (g.int(1, 2), channels, *sizes)
    many = (groups * outer,) if g.chance(0.4) else ()
    # Maps with zero points of their own are for symmetric weights in every quantizer.
    zero = np.zeros(many, t2) if many else point(g, t2)
    feed(g, whole8(g, t1, shape), scale(g), point(g, t1),
         whole8(g, t2, (groups * outer, inner, *kernel)), scale(g, 0.01, 0.05, many), zero,
         scale(g, 0.05, 3), point(g, t1),
         g.rng.integers(-500, 500, groups * outer).astype(np.int32) if g.chance() else None,
         fixed=(3, 4, 5))
    one_step(g)
    if t1 == np.int8 and t2 == np.uint8:  # no kernel of onnxruntime has this pair
        turn = (0, rank + 1, *range(1, rank + 1))
        if many or not last:
            raise Redraw
        x = g.inputs[0]
        g.form_of["reference"] = {
            "domain": "", "opset": 21, "attrs": {k: v for k, v in g.attrs.items() if
                                                 k != "channels_last"},
            "inputs": [replace(x, value=np.ascontiguousarray(x.value.transpose(turn))),
                       *g.inputs[1:]],
            "peer_after": lambda r: [r[0].transpose(0, *range(2, rank + 2), 1)]}


@op("QGemm", domain=MS)
def qgemm(g):
    ta, tb = g.dtype("TA"), g.dtype("TB")
    if ta == np.int8 and tb == np.uint8:
        raise Redraw  # the schema's pairs: u8 u8, u8 s8, s8 s8
    m, k, n = g.dim(), g.dim(empty=False), g.dim()
    a, b = g.attr("transA", [0, 1]), g.attr("transB", [0, 1])
    alpha = g.attr("alpha", [1.0, 0.5], 0.6) or 1.0
    many = (n,) if g.chance(0.4) else ()
    c = g.rng.integers(-5000, 5000, g.pick([(n,), (m, n), (1, n), (m, 1), (1,), ()])) \
        if g.chance() else None
    requantized = g.chance()
    sa, sb = scale(g), scale(g, shape=many)
    g.types["TC"], g.types["TYZ"] = "tensor(int32)", g.types["TA"]
    feed(g, whole8(g, ta, (k, m) if a else (m, k)), sa, point(g, ta),
         whole8(g, tb, (n, k) if b else (k, n)), sb, point(g, tb, many),
         None if c is None else c.astype(np.int32),
         scale(g, 0.5, 5) if requantized else None, point(g, ta) if requantized else None,
         fixed=(4, 5))
    g.types["TY"] = g.types["TA"] if requantized else "tensor(float)"
    one_step(g)
    if not requantized:  # an exact sum times alpha * sa * sb: three roundings on either side
        g.tolerance = Tolerance(ulps=6)


@op("DynamicQuantizeMatMul", domain=MS)
def dynamic_quantize_matmul(g):
    g.types["T1"] = "tensor(float)"
    t2 = g.dtype("T2")
    g.regime = g.pick(["plain", "whole"])
    a, b, k = matmul_shapes(g, g.int(1, 20))
    if len(a) < 2 or len(b) < 2 or 0 in a or 0 in b:
        raise Redraw
    many = (b[-1],) if g.chance(0.4) and len(b) == 2 else ()
    x, sb = small(g, F32, *a), scale(g, shape=many)
    zero = point(g, t2, many) if g.chance(0.7) else None
    bias = small(g, F32, b[-1]) if g.chance() else None
    feed(g, x, whole8(g, t2, b), sb, zero, bias, fixed=(1, 2, 3))
    # A's scale and zero point come from its range in float: where a quotient lies at a half, one
    # element may be quantized to the other neighbour, which moves a sum by one step of A times
    # (B - zero) * scale, at most 255 * scale.
    step = (max(x.max(), 0) - min(x.min(), 0)) / 255 if x.size else 0
    g.tolerance = Tolerance(ulps=8, absolute=float(step * 255 * sb.max(initial=0)),
                            scale=bounds.most(bias) * 2)


@op("MatMulIntegerToFloat", domain=MS)
def matmul_integer_to_float(g):
    t1, t2 = g.dtype("T1"), g.dtype("T2")
    g.dtype("T3", only=["float"])
    if t1 == np.int8 and t2 == np.uint8:
        raise Redraw  # no kernel: its pairs are those of QGemm
    a, b, k = matmul_shapes(g, g.int(1, 20))
    if len(a) < 2 or len(b) < 2:
        raise Redraw
    many = (b[-1],) if g.chance(0.4) and len(b) == 2 else ()
    sa, sb = scale(g), scale(g, shape=many)
    bias = small(g, F32, b[-1]) if g.chance() else None
    feed(g, whole8(g, t1, a), whole8(g, t2, b), sa, sb,
         point(g, t1) if g.chance(0.8) else None, point(g, t2, many) if g.chance(0.8) else None,
         bias, fixed=(1, 3, 5))
    g.promote = False
    # An exact sum (below 2^24 at k <= 20, |a b| <= 255^2), times sa * sb, plus the bias: 4 roundings.
    g.tolerance = Tolerance(ulps=4, scale=2 * (float(sa) * bounds.most(sb) * k * 255 ** 2 +
                                               bounds.most(bias)))


@op("MatMulNBits", domain=MS)
def matmul_nbits(g):
    dtype = g.dtype("T1", only=["float", "float16", "bfloat16"])
    g.types["T2"] = "tensor(uint8)"
    bits, block = g.pick([2, 4, 4, 8]), g.pick([16, 32, 64])
    k, n = g.pick([16, 32, 40, 64, 80, 130]), g.pick([1, 3, 8, 17])
    blocks = -(-k // block)
    rows = g.shape(low=1, high=2)
    g.attrs |= {"K": k, "N": n, "bits": bits, "block_size": block}
    level = g.pick([None, None, 4])
    if level:
        g.attrs["accuracy_level"] = level
    x = small(g, dtype, *rows, k)
    scales = np.abs(small(g, dtype, n, blocks)).astype(dtype)
    how = g.pick(["none", "packed", "float"])
    zeros = None
    if how == "packed":
        zeros = g.rng.integers(0, 256, (n, -(-blocks * bits // 8))).astype(np.uint8)
        g.types["T3"] = "tensor(uint8)"
    elif how == "float":
        zeros = (small(g, dtype, n, blocks) + 2 ** (bits - 1)).astype(dtype)
        g.types["T3"] = g.types["T1"]
    index = None
    if g.chance(0.2) and bits != 2:
        index = g.rng.integers(0, blocks, blocks * block).astype(np.int32)
        g.types["T4"] = "tensor(int32)"
    bias = small(g, dtype, n) if g.chance(0.4) else None
    weights = g.rng.integers(0, 256, (n, blocks, block * bits // 8)).astype(np.uint8)
    feed(g, x, weights, scales, zeros, index, bias, fixed=(1, 2, 3, 4))
    g.formula = lambda *given: [nbits(bits, block, k, *given)]
    # Weights (q - zero) * scale of at most 2^bits scales, rounded once; float zero points add one.
    top = (2 ** bits + (bounds.most(zeros) if how == "float" else 0)) * bounds.most(scales)
    # At accuracy_level 4 an element of x may be off by half of a 127th of its block's largest.
    g.tolerance = Tolerance(ulps=4, scale=bounds.dot(k + 3, x, top, extra=bounds.most(bias)),
                            absolute=k * top * bounds.most(x) / 250 if level else 0.0)


def parts_of(packed, bits, count):
    """[..., bytes] as the numbers of `bits` bits that lie in them, lowest first; `count` of them."""
    out = np.stack([(packed >> (bits * k)) & (2 ** bits - 1) for k in range(8 // bits)], -1)
    return out.reshape(*packed.shape[:-1], -1)[..., :count].astype(np.float64)


def nbits(bits, block, k, x, weights, scales, zeros=None, index=None, bias=None):
    """x times the weights (q - zero) * scale of their block, or of the block that g_idx names."""
    n, blocks = weights.shape[:2]
    q = parts_of(weights, bits, block).reshape(n, blocks * block)[:, :k]
    if zeros is None:
        zeros = np.full((n, blocks), 2.0 ** (bits - 1))
    elif zeros.dtype == np.uint8:
        zeros = parts_of(zeros, bits, blocks)
    at = np.arange(k) // block if index is None else index[:k]
    w = (q - zeros.astype(np.float64)[:, at]) * scales.astype(np.float64)[:, at]
    out = x.astype(np.float64) @ w.T
    return out if bias is None else out + bias.astype(np.float64)


@op("MatMulBnb4", domain=MS)
def matmul_bnb4(g):
    dtype = g.dtype("T1", only=["float", "float16", "bfloat16"])
    g.types["T2"] = "tensor(uint8)"
    k, n, block = g.pick([16, 24, 64]), g.pick([1, 5, 8]), g.pick([16, 32, 64])
    g.attrs |= {"K": k, "N": n, "block_size": block, "quant_type": g.pick([0, 1])}
    x = small(g, dtype, *g.shape(low=1, high=2), k)
    absmax = np.abs(small(g, dtype, -(-n * k // block))).astype(dtype)
    feed(g, x, g.rng.integers(0, 256, (n * k + 1) // 2).astype(np.uint8), absmax, fixed=(1, 2))
    g.tolerance = Tolerance(ulps=4, scale=bounds.dot(k + 2, x, absmax))


@op("MatMulFpQ4", domain=MS)
def matmul_fp_q4(g):
    g.types |= {"T1": "tensor(float)", "T2": "tensor(uint8)", "T3": "tensor(int64)"}
    k, n, kind = g.pick([32, 50, 64]), g.pick([1, 5, 8]), g.pick([0, 1])
    g.attrs["blk_quant_type"] = kind
    blob = g.rng.integers(0, 256, (n * -(-k // 32), 4 + kind + 16)).astype(np.uint8)
    scales = np.abs(g.rng.standard_normal((len(blob), 1))).astype(F32)
    blob[:, :4] = scales.view(np.uint8)
    if kind:
        blob[:, 4] &= 15
    x = small(g, F32, *g.shape(low=2, high=3), k)
    feed(g, x, blob.reshape(-1), np.array([k, n], np.int64), fixed=(1, 2))
    g.tolerance = Tolerance(ulps=4, scale=bounds.dot(k + 2, x, 16.0, scales))


@op("GatherBlockQuantized", domain=MS)
def gather_block_quantized(g):
    dtype = g.dtype("T1")
    g.promote = False
    out, index = g.dtype("T2", only=["float", "float16"]), g.dtype("Tind")
    block, rows = g.pick([16, 32]), g.int(1, 6)
    bytes_ = dtype == np.uint8
    bits = g.pick([2, 4, 8]) if bytes_ else 4
    per = 8 // bits if bytes_ else 1
    columns = per * g.int(1, 6) * (4 if not bytes_ else 1)
    blocks = -(-columns // block)
    floats = "float" in dtype.name
    if floats:
        data = small(g, np.dtype(np.float64), rows, columns).astype(dtype)
    elif bytes_:
        data = g.rng.integers(0, 256, (rows, columns // per)).astype(np.uint8)
    else:
        data = g.whole(dtype, (rows, columns), extreme=False, low=-8, high=15)
    zeros = None
    if g.chance() and not floats:
        zeros = g.rng.integers(0, 256, (rows, -(-blocks // per))).astype(np.uint8) if bytes_ else \
            g.whole(dtype, (rows, blocks), extreme=False, low=-8, high=15)
    g.attrs |= {"block_size": block, "gather_axis": 0, "quantize_axis": 1}
    if bytes_:
        g.attrs["bits"] = bits
    where = g.rng.integers(-rows, rows, g.shape(high=2)).astype(index)
    scales = small(g, out, rows, blocks)
    feed(g, data, where, scales, zeros, fixed=(0, 2, 3))

    def formula(data, where, scales, zeros=None):
        q = parts_of(data, bits, columns) if bytes_ else data.astype(np.float64)
        z = np.full((rows, blocks), 2.0 ** (bits - 1) if bytes_ else 0.0)
        if zeros is not None:
            z = parts_of(zeros, bits, blocks) if bytes_ else zeros.astype(np.float64)
        at = np.arange(columns) // block
        return [((q - z[:, at]) * scales.astype(np.float64)[:, at])[where]]
    g.formula = formula
    g.tolerance = Tolerance(ulps=1)  # one product


@op("QEmbedLayerNormalization", domain=MS)
def q_embed_norm(g):
    g.types |= {"T1": "tensor(int32)", "T": "tensor(float)"}
    t2 = g.dtype("T2")
    g.promote = False
    batch, new, width, words, places = g.int(1, 3), g.int(1, 4), g.pick([4, 8, 9]), 10, 6
    segments = g.chance(0.7)
    sizes = [(words, width), (places, width), (2, width) if segments else None, (width,), (width,)]
    data = [None if s is None else whole8(g, t2, s) for s in sizes]
    scales = [None if s is None else scale(g, 0.01, 0.03) for s in sizes]
    zeros = [None if s is None else point(g, t2) for s in sizes]
    feed(g, g.rng.integers(0, words, (batch, new)).astype(np.int32),
         g.rng.integers(0, 2, (batch, new)).astype(np.int32) if segments else None, *data,
         (np.arange(new) < g.rng.integers(1, new + 1, (batch, 1))).astype(np.int32)
         if g.chance() else None, *scales, *zeros)
    g.attrs["epsilon"] = 1e-5
    g.outputs = 2
    tables = [(d.astype(np.float64) - z) * s for d, s, z in zip(data, scales, zeros, strict=True)
              if d is not None]
    embed_bound(g, *tables[:2 + segments], gamma=tables[-2], beta=tables[-1])


def embed_bound(g, *tables, gamma, beta):
    """A row is a sum of two or three table rows; the norm amplifies its rounding by 1 / deviation,
    which no pair of different rows is known to leave above sqrt(epsilon) alone."""
    ids, segments = g.inputs[0].value, g.inputs[1].value
    rows = tables[0][ids].astype(np.float64) + tables[1][np.arange(ids.shape[1])]
    if len(tables) > 2 and segments is not None:
        rows = rows + tables[2][segments]
    off = bounds.norm(rows, rows.shape[-1], bounds.most(gamma), 1e-5, bounds.most(beta))
    spread = np.sqrt(rows.var(-1) + 1e-5).min()
    top = sum(bounds.most(t) for t in tables)
    g.tolerance = Tolerance(ulps=8, scale=off + 8 * top / spread * bounds.most(gamma))
    if spread < 1e-2:
        raise Redraw  # rows that cancel: the bound would cover everything


@op("DynamicQuantizeLSTM", domain=MS)
def dynamic_quantize_lstm(g):
    g.types["T1"], t2 = "tensor(int32)", g.dtype("T2")
    g.types["T"] = "tensor(float)"
    g.regime = "plain"
    batch, steps, width, hidden = g.int(1, 2), g.int(1, 4), g.pick([2, 4]), g.pick([4, 8])
    direction = g.pick(["forward", "reverse", "bidirectional"])
    ways = 2 if direction == "bidirectional" else 1
    g.attrs |= {"hidden_size": hidden, "direction": direction}
    sw, sr = (scale(g, 0.002, 0.005, (ways,)) for _ in range(2))
    x = small(g, F32, steps, batch, width)
    weights = [whole8(g, t2, (ways, n, 4 * hidden)) for n in (width, hidden)]
    feed(g, x, *weights, small(g, F32, ways, 8 * hidden) if g.chance() else None,
         g.rng.integers(1, steps + 1, batch).astype(np.int32) if g.chance(0.3) else None,
         small(g, F32, ways, batch, hidden) if g.chance(0.3) else None,
         small(g, F32, ways, batch, hidden) if g.chance(0.3) else None, None,
         sw, point(g, t2, (ways,)), sr, point(g, t2, (ways,)), fixed=(1, 2, 8, 9, 10, 11))
    g.outputs = 3
    # x and h are quantized anew at each step: a value at a half may take the other step, of
    # range / 255, which moves a gate by 255 * scale * range / 255 and, by the slopes of the gates
    # (at most 1/4 and 1), the cell by about as much; each step hands it on.
    moved = float(sw.max()) * 2 * bounds.most(x) + float(sr.max()) * 2
    g.tolerance = Tolerance(ulps=64, absolute=moved * 2 * (steps + 1))


assert ml_dtypes
