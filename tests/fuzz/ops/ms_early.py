"""ms_early.py - operators that onnxruntime had before ONNX did, utilities, and fused floats."""
import numpy as np

from . import bounds, formulas
from .case import Redraw, Tolerance, op, type_name
from .elementwise import gelu, gelu_of
from .image import grid_sample
from .linear import fits, matmul_shapes, window, window_attrs
from .move import gather_nd, trilu
from .ms_attention import feed, small
from .schemas import MS

F32 = np.dtype(np.float32)
op("Gelu", domain=MS)(gelu)


@op("Trilu", domain=MS)
def ms_trilu(g):
    trilu(g)
    side = np.triu if g.attrs.get("upper", 1) else np.tril
    g.peers = ("onnxruntime", "formula")
    g.formula = lambda x, k=0: [side(x, int(k))]


@op("GatherND", domain=MS)
def ms_gather_nd(g):
    gather_nd(g)
    g.formula = lambda x, at: [x[tuple(np.moveaxis(at, -1, 0))]]


@op("GridSample", domain=MS)
def ms_grid_sample(g):
    g.types["T2"] = f"tensor({type_name(g.dtype('T1'))})"
    grid_sample(g)


@op("Range", domain=MS)
def range_(g):
    dtype = g.dtype()
    step = g.pick([1, 2, -1, -3]) if dtype.kind == "i" else g.pick([1.0, 0.5, -0.25])
    start = g.int(-9, 9)
    shape = g.pick([(), (1,)])
    feed(g, np.full(shape, start, dtype),
         np.full(shape, start + step * g.int(-2, 20) + (step / 2 if dtype.kind == "f" else 0), dtype),
         np.full(shape, step, dtype) if step != 1 or g.chance() else None)


@op("Pad", domain=MS)
def pad(g):
    dtype = g.dtype()
    shape = g.shape(low=1, high=3)
    mode = g.attr("mode", ["constant", "reflect", "edge"])
    most = [3 if mode in (None, "constant") else 0 if d == 0 else min(3, d - 1) if mode == "reflect"
            else 3 for d in shape]
    pads = np.array([g.int(0, m) for m in most * 2], np.int64)
    if mode in (None, "constant") and g.chance(0.3):
        pads[0] = -min(1, shape[0] // 2)
    x = g.values(dtype, shape)
    feed(g, x, pads[None] if g.chance() else pads,
         np.full((1,), 7, dtype) if mode in (None, "constant") and g.chance() else None, fixed=(1,))


@op("ExpandDims", domain=MS)
def expand_dims(g):
    x = g.values(g.dtype("T"), g.shape(high=3))
    feed(g, x, np.array(g.int(-x.ndim - 1, x.ndim), np.int32), fixed=(1,))
    g.formula = lambda x, axis: [np.expand_dims(x, int(axis))]


@op("Unique", domain=MS)
def unique(g):
    g.regime = "whole"
    feed(g, g.values(g.dtype("T", only=["float"]), (g.int(0, 12),)))
    g.outputs = 3


@op("SampleOp", domain=MS)
def sample_op(g):
    feed(g, g.values(g.dtype(), g.shape()))
    g.formula = lambda x: [x]


@op("Inverse", domain=MS)
def inverse(g):
    dtype = g.dtype()
    n = g.int(1, 4)
    x = g.input(small(g, dtype, *g.shape(high=2, empty=False), n, n), repeat=False)
    wide = x.astype(np.float64)
    condition = np.linalg.cond(wide).max() if np.all(np.isfinite(wide)) else np.inf
    if condition > 1e3:
        raise Redraw  # the bound below grows with it
    # Elimination: the relative error of the inverse is at most about 8 n^3 cond(A) u.
    g.tolerance = Tolerance(ulps=4, scale=8 * n ** 3 * condition *
                            float(np.abs(np.linalg.inv(wide)).max()))


@op("QuickGelu", domain=MS)
def quick_gelu(g):
    g.attr("alpha", [1.0, 1.702, -0.5])
    x = g.input(g.values(g.dtype(), g.shape(), special="finite"))
    # Stated for swish: 1.2e-7 |x|, here and there; the rest is relative.
    g.tolerance = Tolerance(ulps=2 * bounds.FUNCTION, scale=2 * bounds.magnitude(x))


@op("FastGelu", "BiasGelu", domain=MS)
def bias_gelu(g):
    dtype = g.dtype()
    shape = g.shape(low=1, empty=False)
    bias = g.name == "BiasGelu" or g.chance()
    feed(g, g.values(dtype, shape, special=False),
         small(g, dtype, shape[-1]) if bias else None)
    if dtype == np.float64:  # the peer's constants are float
        g.peers = ("formula",)
        g.formula = lambda x, b=0.0: [gelu_of(x + b, g.name == "FastGelu")]
    # Stated for gelu: 1.2e-7 |x|; the sum before it is off by half an ULP of |x| + |b|.
    g.tolerance = Tolerance(ulps=4, scale=2 * bounds.FUNCTION *
                            max(sum(bounds.most(i.value) for i in g.inputs), 1))


@op("CDist", domain=MS)
def cdist(g):
    dtype = g.dtype()
    k = g.int(1, 9)
    squared = g.attr("metric", ["euclidean", "sqeuclidean"], 1) == "sqeuclidean"
    a, b = small(g, dtype, g.int(1, 5), k), small(g, dtype, g.int(1, 5), k)
    feed(g, a, b)
    off = bounds.dot(k + 2, max(bounds.most(a), bounds.most(b)), max(bounds.most(a), bounds.most(b)),
                     4.0)
    # |a|^2 - 2ab + |b|^2 cancels near zero: the root turns an error e there into sqrt(e).
    eps = float(np.finfo(dtype).eps)
    g.tolerance = Tolerance(ulps=4, scale=off, absolute=0.0 if squared else np.sqrt(off * eps))


@op("DynamicTimeWarping", domain=MS)
def dynamic_time_warping(g):
    g.types |= {"F": "tensor(float)", "I": "tensor(int32)"}
    rows, columns = g.int(1, 8), g.int(1, 8)
    x = g.rng.permutation(rows * columns).astype(F32)  # equal costs leave the path open
    feed(g, x.reshape((1, rows, columns) if g.chance() else (rows, columns)))


@op("MurmurHash3", domain=MS)
def murmur(g):
    dtype = g.dtype("T1")
    positive = g.attr("positive", [0, 1])
    g.attr("seed", [0, 7, 123456])
    x = g.text(g.shape(), ["", "a", "abc", "abcd", "abcde", "über", "x" * 17]) if dtype == object \
        else g.values(dtype, g.shape())
    feed(g, x)
    g.types["T2"] = "tensor(int32)" if positive == 0 else "tensor(uint32)"


@op("UnfoldTensor", domain=MS)
def unfold(g):
    shape = g.shape(low=1, high=3, empty=False)
    dim = g.int(-len(shape), len(shape) - 1)
    size, step = g.int(1, shape[dim]), g.int(1, 3)
    g.attrs |= {"dim": dim, "size": size, "step": step}
    feed(g, g.values(g.dtype("T"), shape))
    starts = range(0, shape[dim] - size + 1, step)
    g.formula = lambda x: [np.stack([np.moveaxis(x.take(range(s, s + size), dim), dim, -1)
                                     for s in starts], dim % len(shape))]


@op("MatMulInteger16", domain=MS)
def matmul_integer_16(g):
    a, b = g.dtype("T1"), g.dtype("T2")
    left, right, _ = matmul_shapes(g, g.int(1, 9))
    g.types["T3"] = "tensor(int32)"
    feed(g, g.values(a, left), g.values(b, right))
    g.formula = lambda a, b: [np.matmul(a.astype(np.int64), b.astype(np.int64))]


@op("BifurcationDetector", domain=MS)
def bifurcation(g):
    g.dtype("T")
    words = g.int(2, 6)
    source = g.rng.integers(0, words, g.int(1, 12)).astype(np.int64)
    now = g.rng.integers(0, words, g.int(1, 4)).astype(np.int64)
    index = g.int(0, len(source) - 1)
    guess = None
    if g.chance():  # as long as the rest of the source and one more
        guess = g.rng.integers(0, words, len(source) - index + 1).astype(np.int64)
        if g.chance(0.6):
            guess[:len(source) - index] = source[index:]
    feed(g, source, now, np.array(index, np.int64), guess)
    g.outputs = 2


@op("CropAndResize", domain=MS)
def crop_and_resize(g):
    g.types |= {"T1": "tensor(float)", "T2": "tensor(int32)"}
    batch, rois = g.int(1, 3), g.int(1, 4)
    g.attr("mode", ["bilinear", "nearest"])
    g.attr("extrapolation_value", [0.0, -3.0])
    h, w = g.int(2, 6), g.int(2, 6)
    # Corners in eighths of an odd grid: where a float lies on a border is exact on both sides.
    feed(g, small(g, F32, batch, g.int(1, 3), h, w),
         g.rng.uniform(-0.2, 1.2, (rois, 4)).astype(F32),
         g.rng.integers(0, batch, rois).astype(np.int32),
         np.array([g.int(1, 4), g.int(1, 4)], np.int32), fixed=(3,))
    # A place is off by about 4 eps of the size, which the slope turns into a value.
    g.tolerance = Tolerance(ulps=8, scale=(8 * max(h, w) + 8) * 2 * bounds.most(g.inputs[0].value))


@op("WordConvEmbedding", domain=MS)
def word_conv(g):
    g.types |= {"T": "tensor(int32)", "T1": "tensor(float)"}
    words, letters, filters, window_, size = g.int(1, 4), g.int(3, 6), g.int(1, 4), g.int(1, 3), 2
    seq = g.rng.integers(1, 9, (words, letters)).astype(np.int32)
    for row in seq:
        row[g.int(1, letters):] = 0
    w = small(g, F32, filters, 1, window_, size)
    b, c = small(g, F32, filters), small(g, F32, 9, size)
    feed(g, seq, w, b, c, fixed=(1, 2, 3))
    # A dot product of window * size terms, its maximum, and tanh of slope 1.
    g.tolerance = Tolerance(ulps=bounds.FUNCTION,
                            scale=bounds.dot(window_ * size, w, c, extra=bounds.most(b)))


# ---- onnxruntime's own of the default domain

@op("Affine", "ScaledTanh", "ParametricSoftplus")
def with_two_factors(g):
    for k in ("alpha", "beta"):
        g.attr(k, [0.5, 1.0, 2.0], 1)
    x = g.values(g.dtype(), g.shape(), special="finite" if g.name == "Affine" else False)
    feed(g, x)
    if g.name == "Affine":
        g.formula = lambda x: [g.attrs["alpha"] * formulas.double(x) + g.attrs["beta"]]
    # A product before and one after a function of slope at most 1.
    g.tolerance = Tolerance(ulps=bounds.FUNCTION + 4,
                            scale=2.0 * (2 + 2 * bounds.most(x) * (g.name != "Affine")))


@op("Scale")
def scale(g):
    g.attr("scale", [0.5, 1.0, 255.0, -0.1])
    x = g.values(g.dtype(), g.shape(), special="finite")
    feed(g, x)
    factor = float(np.float32(g.attrs.get("scale", 1.0)))
    g.formula = lambda x: [factor * formulas.double(x)]
    g.tolerance = Tolerance(ulps=2)


@op("Crop")
def crop(g):
    shape = (g.int(1, 2), g.int(1, 3), g.int(3, 7), g.int(3, 7))
    left, top, right, bottom = (g.int(0, 1) for _ in range(4))
    g.attrs["border"] = [left, top, right, bottom]
    height, width = shape[2] - top - bottom, shape[3] - left - right
    if g.chance():
        height, width = g.int(1, shape[2] - top), g.int(1, shape[3] - left)
        g.attrs["scale"] = [height, width]
    feed(g, g.values(g.dtype(), shape))
    g.formula = lambda x: [x[:, :, top:top + height, left:left + width]]


@op("ImageScaler")
def image_scaler(g):
    channels = g.int(1, 4)
    g.attrs |= {"scale": g.pick([0.5, 2.0, 0.1]),
                "bias": [float(v) for v in g.rng.standard_normal(channels).astype(F32)]}
    x = small(g, g.dtype(), g.int(1, 2), channels, g.int(1, 5), g.int(1, 5))
    feed(g, x)
    g.tolerance = Tolerance(ulps=2, scale=2 * (2 * bounds.most(x) + 4))


# ---- norms

@op("SimplifiedLayerNormalization")
@op("SimplifiedLayerNormalization", domain=MS)
def simplified_norm(g):
    dtype = g.dtype("T")
    g.types |= {"V": g.types["T"], "U": "tensor(float)"}
    shape = g.shape(low=1, empty=False)
    axis = g.int(-len(shape), len(shape) - 1)
    g.attrs |= {"axis": axis, "epsilon": g.pick([1e-5, 1e-2])}
    count = int(np.prod(shape[axis:] if axis < 0 else shape[axis:]))
    x, s = small(g, dtype, *shape), small(g, dtype, *shape[axis:])
    feed(g, x, s)
    g.outputs = 1
    if g.domain:
        g.peer_form = {"domain": "", "opset": 17}
    g.tolerance = Tolerance(ulps=8, scale=bounds.norm(x, count, bounds.most(s), g.attrs["epsilon"],
                                                      mean=False))


@op("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", domain=MS)
def skip_norm(g):
    dtype = g.dtype("T")
    g.types["U"] = "tensor(float)"
    batch, new, width = g.few(1, 3), g.int(1, 4), g.pick([1, 4, 8, 17])
    plain = g.name == "SkipLayerNormalization"
    g.attrs["epsilon"] = g.pick([1e-5, 1e-2])
    shape = (batch, new, width) if g.chance(0.8) else (batch * new, width)
    x = small(g, dtype, *shape)
    skip = small(g, dtype, *(shape if len(shape) == 2 or g.chance(0.6) else
                             g.pick([(1, new, width), (new, width)])))
    gamma = small(g, dtype, width)
    beta = small(g, dtype, width) if plain and g.chance() else None
    bias = small(g, dtype, width) if g.chance() else None
    feed(g, x, skip, gamma, *([beta] if plain else []), bias)
    g.outputs, g.unwanted = g.pick([(1, ()), (4, (1, 2))])
    rows = x.astype(np.float64) + skip + (0 if bias is None else bias.astype(np.float64))
    square = (rows.var(-1) if plain else (rows ** 2).mean(-1)) + g.attrs["epsilon"]
    spread = np.sqrt(square).min(initial=1.0)
    top = bounds.most(x) + bounds.most(skip) + bounds.most(bias)
    # The sums before the norm are off by 2 eps of their terms, which 1 / deviation magnifies.
    g.tolerance = Tolerance(ulps=8, scale=4 * top / spread * bounds.most(gamma) + 4 * top +
                            bounds.norm(rows, width, bounds.most(gamma), g.attrs["epsilon"],
                                        bounds.most(beta), plain))


@op("EmbedLayerNormalization", domain=MS)
def embed_norm(g):
    from .ms_quant import embed_bound
    g.types["T1"] = "tensor(int32)"
    dtype = g.dtype("T")
    batch, new, width, words, places = g.int(1, 3), g.int(1, 4), g.pick([4, 8, 9]), 10, 6
    segments = g.chance(0.7)
    tables = [small(g, dtype, words, width), small(g, dtype, places, width)]
    third = small(g, dtype, 2, width) if segments else None
    gamma, beta = small(g, dtype, width), small(g, dtype, width)
    g.attrs["epsilon"] = 1e-5
    feed(g, g.rng.integers(0, words, (batch, new)).astype(np.int32),
         g.rng.integers(0, 2, (batch, new)).astype(np.int32) if segments else None,
         *tables, third, gamma, beta,
         (np.arange(new) < g.rng.integers(1, new + 1, (batch, 1))).astype(np.int32)
         if g.chance() else None)
    g.outputs = g.pick([2, 3])
    embed_bound(g, *tables, *([third] if segments else []), gamma=gamma, beta=beta)


# ---- products with something around them

@op("FusedMatMul", "TransposeMatMul", domain=MS)
def fused_matmul(g):
    dtype = g.dtype()
    k, m, n = g.dim(empty=False), g.dim(), g.dim()
    ta, tb = g.attr("transA", [0, 1]), g.attr("transB", [0, 1])
    alpha = g.attr("alpha", [1.0, 0.5, 2.0]) or 1.0
    lead = g.shape(high=2)
    a, b = small(g, dtype, *lead, *((k, m) if ta else (m, k))), \
        small(g, dtype, *(lead if g.chance() else ()), *((n, k) if tb else (k, n)))
    if g.name == "FusedMatMul" and len(lead) == 1 and a.ndim == b.ndim and g.chance(0.3):
        # [.., batch, ..] of which the batch stands second to last
        for name in ("transBatchA", "transBatchB"):
            g.attrs[name] = 1
        a = np.ascontiguousarray(np.moveaxis(a, 0, 1))
        b = np.ascontiguousarray(np.moveaxis(b, 0, 1))
    feed(g, a, b)
    g.tolerance = Tolerance(ulps=4, scale=bounds.dot(k + 1, a, b, float(alpha)))


ACTIVATIONS = {"Relu": [], "Tanh": [], "Sigmoid": [], "LeakyRelu": [0.1], "Clip": [-0.5, 1.5],
               "HardSigmoid": [0.3, 0.4]}


@op("FusedGemm", domain=MS)
def fused_gemm(g):
    dtype = g.dtype(only=["float", "float16", "double"])
    m, k, n = g.dim(), g.dim(empty=False), g.dim()
    ta, tb = g.attr("transA", [0, 1]), g.attr("transB", [0, 1])
    alpha, beta = g.attr("alpha", [1.0, 0.5]) or 1.0, g.attr("beta", [1.0, 0.5]) or 1.0
    name = g.pick([k for k in ACTIVATIONS if k != "Clip"])
    g.attrs["activation"] = name
    for key, value in zip(("activation_alpha", "activation_beta"), ACTIVATIONS[name], strict=False):
        g.attrs[key] = value
    a, b = small(g, dtype, *((k, m) if ta else (m, k))), small(g, dtype, *((n, k) if tb else (k, n)))
    c = small(g, dtype, *g.pick([(n,), (m, n), (1, n), (m, 1), (1,)])) if g.chance() else None
    feed(g, a, b, c)
    g.tolerance = Tolerance(ulps=bounds.FUNCTION,
                            scale=bounds.dot(k + 2, a, b, float(alpha),
                                             extra=beta * bounds.most(c)))


@op("FusedConv", domain=MS)
def fused_conv(g):
    dtype = g.dtype()
    rank = g.pick([1, 2, 2])
    kernel, strides, dilations, pads, sizes = window(g, rank)
    if not window_attrs(g, kernel, strides, dilations, pads, 1) and \
            not fits(sizes, kernel, dilations):
        raise Redraw
    if "SAME" in g.attrs.get("auto_pad", ""):
        raise Redraw  # the sum Z needs the size of the output
    groups, inner, outer = g.pick([1, 1, 2]), g.int(1, 4), g.pick([1, 3, 8])
    if groups > 1:
        g.attrs["group"] = groups
    name = g.pick(list(ACTIVATIONS))
    g.attrs["activation"] = name
    if ACTIVATIONS[name]:
        g.attrs["activation_params"] = ACTIVATIONS[name]
    batch, maps = g.int(1, 2), groups * outer
    padding = pads if "pads" in g.attrs else [0] * (2 * rank)
    out = [(s + padding[k] + padding[k + rank] - d * (w - 1) - 1) // t + 1 for k, (s, d, w, t) in
           enumerate(zip(sizes, dilations, kernel, strides, strict=True))]
    x = small(g, dtype, batch, groups * inner, *sizes)
    w = small(g, dtype, maps, inner, *kernel)
    total = g.chance(0.4)
    b = small(g, dtype, maps) if g.chance() else None
    z = small(g, dtype, batch, maps, *out) if total else None
    feed(g, x, w, b, z)
    terms = inner * int(np.prod(kernel))
    g.tolerance = Tolerance(ulps=bounds.FUNCTION,
                            scale=bounds.dot(terms + 2, x, w, extra=bounds.most(b) + bounds.most(z)))

