"""linear.py - sums of products: matrix products, convolutions, recurrent networks, attention,
transforms."""
import dataclasses

import numpy as np

from . import bounds, formulas
from .case import Redraw, Tolerance, op


def i64(*values):
    return np.array(values, np.int64)


def numbers(g, dtype, shape):
    return g.values(dtype, shape, special="finite sums" if "float" in dtype.name else False)


def matmul_shapes(g, k=None):
    k = g.dim() if k is None else k
    m, n = g.dim(), g.dim()
    full = g.shape(high=2)
    left, right = g.narrower(full), full
    if g.chance():
        left, right = right, left
    a, b = left + (m, k), right + (k, n)
    if g.chance(0.15):
        a = (k,)
    if g.chance(0.15):
        b = (k,)
    if np.prod(a) > 4000 or np.prod(b) > 4000:
        raise Redraw
    return a, b, k


@op("MatMul")
def matmul(g):
    dtype = g.dtype()
    a, b, k = matmul_shapes(g)
    x = g.input(numbers(g, dtype, a))
    y = g.input(numbers(g, dtype, b))
    g.sum_tolerance(k, total=bounds.most(np.matmul(bounds.magnitude(x), bounds.magnitude(y))))


@op("Gemm")
def gemm(g):
    dtype = g.dtype()
    m, k, n = g.dim(), g.dim(), g.dim()
    ta, tb = g.attr("transA", [0, 1]), g.attr("transB", [0, 1])
    g.attr("alpha", [1.0, 0.5, 2.0] if "float" in dtype.name else [1.0, 2.0])
    beta = g.attr("beta", [1.0, 0.5, 0.0] if "float" in dtype.name else [1.0, 2.0])
    g.regime = g.pick(["plain", "whole"]) if g.regime == "special" and g.chance() else g.regime
    special = "finite sums" if "float" in dtype.name else False
    x = g.input(g.values(dtype, (k, m) if ta else (m, k), special))
    y = g.input(g.values(dtype, (n, k) if tb else (k, n), special))
    if g.version < 11 or g.chance(0.7):
        if g.version < 7:
            shape = g.pick([(m, n), (n,), (1,)])
            g.attrs["broadcast"] = 1
        else:
            shape = g.narrower((m, n))
        # beta = 0: whether NaN in C counts is not specified.
        c = g.input(g.values(dtype, shape, special=beta != 0 and special))
    else:
        c = None
    # alpha and beta are at most 2.
    g.sum_tolerance(k + 2, 2.0, x, y, extra=2 * bounds.most(c))


@op("MatMulInteger")
def matmul_integer(g):
    t1, t2 = g.dtype("T1"), g.dtype("T2")
    a, b, _ = matmul_shapes(g, g.int(1, 40))
    g.input(g.values(t1, a))
    g.input(g.values(t2, b))
    if g.chance(0.7):
        g.input(g.values(t1, ()) if g.chance(0.8) else None)
        if g.chance(0.8):
            per_column = len(b) == 2 and g.chance(0.4)
            g.input(g.values(t2, (b[-1],) if per_column else ()))


@op("QLinearMatMul")
def qlinear_matmul(g):
    t1, t2, t3 = g.dtype("T1"), g.dtype("T2"), g.dtype("T3")
    eighths = any("float" in t.name for t in (t1, t2, t3))
    if eighths and not all("float" in t.name for t in (t1, t2, t3)):
        raise Redraw
    scale = g.dtype("TS", only=["float", "float16", "bfloat16"]) if g.version >= 21 else np.float32
    a, b, k = matmul_shapes(g, g.int(1, 20))
    if len(a) < 2 or len(b) < 2:
        raise Redraw
    for t, shape, s in ((t1, a, 0.02), (t2, b, 0.03)):
        g.input(g.values(t, shape))
        g.input(np.array(s, scale), view=False)
        g.input(g.values(t, ()), view=False)
    g.input(np.array(g.pick([0.05, 0.4, 3.0]), scale), view=False)
    g.input(g.values(t3, ()), view=False)
    g.tolerance = Tolerance(steps=1)
    g.promote = False
    if eighths:
        for i in (g.inputs[2], g.inputs[5], g.inputs[7]):
            i.value = np.zeros((), i.value.dtype)
        g.peers, g.formula = ("formula",), eighth_products


def eighth_products(a, sa, za, b, sb, zb, sy, zy):  # noqa: PLR0913
    """QLinearMatMul of float8: the saturating conversion at the end is ml_dtypes' after a clip."""
    import ml_dtypes
    total = np.matmul(formulas.double(a) * float(sa), formulas.double(b) * float(sb)) / float(sy)
    top = float(ml_dtypes.finfo(zy.dtype).max)
    del za, zb
    return [np.clip(total, -top, top).astype(zy.dtype)]


@op("Einsum")
def einsum(g):
    dtype = g.dtype()
    letters = list("ijkl")
    sizes = {c: g.pick([1, 2, 3, 5] + [0] * g.chance(0.1)) for c in letters}
    count = g.int(1, 3)
    terms = ["".join(str(c) for c in g.rng.choice(letters, g.int(0 if count > 1 else 1, 3),
                                                  replace=g.chance(0.15)))
             for _ in range(count)]
    used = sorted(set("".join(terms)))
    if not used:
        raise Redraw
    equation = ",".join(terms)
    if g.chance(0.8):
        out = [str(c) for c in g.rng.permutation(used)][:g.int(0, len(used))]
        equation += "->" + "".join(out)
    g.attrs["equation"] = equation
    arrays = [g.input(g.values(dtype, tuple(sizes[c] for c in t),
                               special="finite sums" if count == 1 else False)) for t in terms]
    g.sum_tolerance(np.prod([sizes[c] for c in used]), *arrays)


@op("Det")
def det(g):
    dtype = g.dtype()
    n = g.int(1, 5)
    x = g.input(g.values(dtype, g.shape(high=2, empty=False) + (n, n), special=False))
    # Elimination with pivoting: n^3 / 3 operations on numbers that grow to at most 2^(n-1) |x|;
    # the determinant is a product of n of them.
    g.tolerance = Tolerance(ulps=2, scale=n ** 3 * 2.0 ** (n - 1) *
                            max(bounds.most(x), 1e-3) ** n * n ** (n / 2))


# ---- convolutions

def window(g, rank, size=True, pad_kernel=True):
    """(kernel, strides, dilations, pads, input sizes) of one legal sliding window."""
    kernel = [g.pick([1, 2, 3, 3, 4]) for _ in range(rank)]
    strides = [g.pick([1, 1, 2, 3]) for _ in range(rank)]
    dilations = [g.pick([1, 1, 1, 2]) if g.has("dilations") else 1 for _ in range(rank)]
    pads = [g.int(0, max(0, k - 1)) for k in kernel] + [g.int(0, max(0, k - 1)) for k in kernel]
    sizes = []
    for k in range(rank):
        extent = dilations[k] * (kernel[k] - 1) + 1
        least = max(extent - pads[k] - pads[k + rank], 1)
        sizes.append(g.int(least, least + g.pick([0, 3, 6, 12])))
    return kernel, strides, dilations, pads, sizes


def window_attrs(g, kernel, strides, dilations, pads, kernel_shape=0.5):
    rank = len(kernel)
    if g.chance(kernel_shape):
        g.attrs["kernel_shape"] = kernel
    if set(strides) != {1} or g.chance():
        g.attrs["strides"] = strides
    if set(dilations) != {1} or (g.has("dilations") and g.chance(0.3)):
        g.attrs["dilations"] = dilations
    how = g.pick(["pads", "pads", "pads", "SAME_UPPER", "SAME_LOWER", "VALID"])
    if how == "pads":
        if set(pads) != {0} or g.chance():
            g.attrs["pads"] = pads
        return True
    g.attrs["auto_pad"] = how
    return how != "VALID" or rank == 0


def fits(sizes, kernel, dilations):
    return all(s >= d * (k - 1) + 1 for s, k, d in zip(sizes, kernel, dilations, strict=True))


@op("Conv", "ConvInteger", "QLinearConv")
def conv(g):
    rank = g.pick([1, 2, 2, 2, 3])
    kernel, strides, dilations, pads, sizes = window(g, rank)
    if not window_attrs(g, kernel, strides, dilations, pads) and not fits(sizes, kernel, dilations):
        raise Redraw
    if g.attrs.get("auto_pad", "").startswith("SAME") and not fits(sizes, [1] * rank, dilations):
        raise Redraw
    groups = g.pick([1, 1, 1, 2, 3])
    inner, outer = g.pick([1, 2, 3, 4, 8]), g.pick([1, 2, 3, 4, 8, 17])
    if groups > 1:
        g.attrs["group"] = groups
    if g.chance(0.15):
        groups, inner, outer = g.pick([4, 8, 16]), 1, 1
        g.attrs["group"] = groups
    x_shape = (g.pick([1, 1, 2, 3] + [0] * (g.name == "Conv" and g.chance(0.1))), groups * inner,
               *sizes)
    w_shape = (groups * outer, inner, *kernel)
    terms = inner * int(np.prod(kernel))
    if g.name == "Conv":
        dtype = g.dtype()
        x = g.input(numbers(g, dtype, x_shape))
        w = g.input(g.values(dtype, w_shape, special=False))
        if g.chance():
            g.input(g.values(dtype, (groups * outer,), special=False))
        b = g.inputs[2].value if len(g.inputs) > 2 else None
        g.sum_tolerance(terms + 1, x, w, extra=bounds.most(b))
        # The reference evaluator multiplies padding by infinities: the formula comes before it.
        g.formula = lambda x, w, b=None: [convolved(g.attrs, x, w, b)]
        return
    g.promote = False
    t1, t2 = g.dtype("T1"), g.dtype("T2")
    if g.name == "ConvInteger":
        g.input(g.values(t1, x_shape))
        g.input(g.values(t2, w_shape))
        if g.chance(0.7):
            padded = set(pads) != {0} or "auto_pad" in g.attrs
            many = g.chance(0.3)
            # The peers disagree on padding beside a zero point, and one takes only one zero point
            # for all maps: a formula stands for both where either shows.
            g.input(g.values(t1, ()))
            if g.chance(0.7):
                g.input(g.values(t2, (groups * outer,) if many else ()))
            if padded:
                g.peers = ("formula",)
        g.formula = lambda x, w, zx=0, zw=0: [formulas.convolution(
            x.astype(np.int64) - zx, w.astype(np.int64) - maps_of(zw, w), g.attrs)]
        return
    t3 = g.dtype("T3")
    g.input(g.values(t1, x_shape))
    g.input(np.array(0.02, np.float32), view=False)
    g.input(g.values(t1, ()), view=False)
    g.input(g.values(t2, w_shape), constant=True)
    many = (groups * outer,) if g.chance(0.4) else ()
    g.input(g.rng.uniform(0.01, 0.05, many).astype(np.float32), view=False)
    g.input(np.zeros(many, t2) if many and t2 == np.int8 else
            np.full(many, g.values(t2, ()), t2), view=False)
    g.input(np.array(g.pick([0.05, 0.4, 2.0]), np.float32), view=False)
    g.input(g.values(t3, ()), view=False)
    if g.chance():
        g.input(g.rng.integers(-500, 500, groups * outer).astype(np.int32))
    g.tolerance = Tolerance(steps=1)
    g.formula = lambda *given: [requantized(g.attrs, *given)]


def convolved(attrs, x, w, b):
    y = formulas.convolution(formulas.double(x), formulas.double(w), attrs)
    return y if b is None else y + formulas.double(b).reshape((1, -1) + (1,) * (x.ndim - 2))


def maps_of(zero, w):
    """A zero point or scale, one or one per map, along the maps of w."""
    zero = np.asarray(zero)
    zero = zero.astype(np.int64) if zero.dtype.kind in "iu" else zero.astype(np.float64)
    return zero.reshape((-1,) + (1,) * (w.ndim - 1)) if zero.ndim else zero


def requantized(attrs, x, sx, zx, w, sw, zw, sy, zy, bias=None):
    """QLinearConv: the exact sum, its scale in double, rounded to even and saturated."""
    total = formulas.convolution(x.astype(np.int64) - int(zx),
                                 w.astype(np.int64) - maps_of(zw, w), attrs)
    column = (1, -1) + (1,) * (w.ndim - 2)
    if bias is not None:
        total = total + bias.astype(np.int64).reshape(column)
    scale = float(sx) * formulas.double(sw).reshape(column) / float(sy)
    info = np.iinfo(zy.dtype)
    return np.clip(np.rint(total * scale) + int(zy), info.min, info.max)


@op("ConvTranspose")
def conv_transpose(g):
    dtype = g.dtype()
    rank = g.pick([1, 2, 2, 3])
    kernel = [g.pick([1, 2, 3, 4]) for _ in range(rank)]
    strides = [g.pick([1, 2, 3]) for _ in range(rank)]
    dilations = [g.pick([1, 1, 2]) for _ in range(rank)]
    sizes = [g.pick([1, 2, 3, 5]) for _ in range(rank)]
    groups, inner, outer = g.pick([1, 1, 2, 3]), g.int(1, 3), g.pick([1, 2, 3, 8])
    extra = [g.int(0, max(s, d) - 1) for s, d in zip(strides, dilations, strict=True)]
    g.attrs |= {"strides": strides, "dilations": dilations}
    if groups > 1:
        g.attrs["group"] = groups
    if g.chance():
        g.attrs["kernel_shape"] = kernel
    full = [s * (n - 1) + d * (k - 1) + 1 for s, n, d, k in
            zip(strides, sizes, dilations, kernel, strict=True)]
    how = g.pick(["pads", "pads", "output_shape", "SAME_UPPER", "SAME_LOWER", "VALID"])
    if how == "pads":
        pads = [g.int(0, 1) for _ in range(2 * rank)]
        if g.chance():
            g.attrs["output_padding"] = extra
        else:
            extra = [0] * rank
        if any(f + e - pads[k] - pads[k + rank] < 1 for k, (f, e) in
               enumerate(zip(full, extra, strict=True))):
            raise Redraw
        g.attrs["pads"] = pads
    elif how == "output_shape":
        g.attrs["output_shape"] = [max(f - g.int(0, 2), 1) for f in full]
        if g.chance(0.3):
            g.attrs["auto_pad"] = g.pick(["SAME_UPPER", "SAME_LOWER"])
    else:
        g.attrs["auto_pad"] = how
        if how != "VALID" and any(f < s * n for f, s, n in
                                  zip(full, strides, sizes, strict=True)):
            raise Redraw  # would need negative padding
    x = g.input(numbers(g, dtype, (g.int(1, 2), groups * inner, *sizes)))
    w = g.input(g.values(dtype, (groups * inner, outer, *kernel), special=False))
    if g.chance():
        g.input(g.values(dtype, (groups * outer,), special=False))
    b = g.inputs[2].value if len(g.inputs) > 2 else None
    g.sum_tolerance(inner * np.prod(kernel) + 1, x, w, extra=bounds.most(b))
    g.peers = ("onnxruntime",)  # the reference evaluator mixes up groups and their biases


@op("DeformConv")
def deform_conv(g):
    dtype = g.dtype()
    kernel, strides, dilations, pads, sizes = window(g, 2)
    g.attrs |= {"strides": strides, "dilations": dilations, "pads": pads}
    if g.chance():
        g.attrs["kernel_shape"] = kernel
    groups, inner, outer, offsets = g.pick([1, 2]), g.int(1, 2) * 2, g.int(1, 3), g.pick([1, 2])
    g.attrs |= {"group": groups, "offset_group": offsets}
    out = [(sizes[k] + pads[k] + pads[k + 2] - dilations[k] * (kernel[k] - 1) - 1) // strides[k] + 1
           for k in range(2)]
    taps, batch = int(np.prod(kernel)), g.int(1, 2)
    x = g.input(g.values(dtype, (batch, groups * inner, *sizes), special=False))
    w = g.input(g.values(dtype, (groups * outer, inner, *kernel), special=False))
    shift = g.real(dtype, (batch, offsets * taps * 2, *out), low=-1.9, high=1.9)
    if g.regime == "whole":
        shift = np.round(shift.astype(np.float32)).astype(dtype)
    g.input(shift)
    if g.chance(0.7):
        g.input(g.values(dtype, (groups * outer,), special=False) if g.chance(0.7) else None)
        if g.chance(0.7):
            g.input(g.real(dtype, (batch, offsets * taps, *out), low=0, high=1))
    # Each tap is a sample between four elements; then the products with w.
    b = g.inputs[3].value if len(g.inputs) > 3 else None
    g.sum_tolerance(4 * inner * taps + 1, x, w, extra=bounds.most(b))
    g.tolerance.scale += inner * taps * bounds.most(w) * bounds.sampled(x, max(sizes), 4)


@op("CausalConvWithState")
def causal_conv(g):
    dtype = g.dtype()
    batch, channels, length, k = g.int(1, 2), g.int(1, 4), g.int(1, 6), g.int(1, 4)
    g.attr("activation", ["none", "silu", "swish"])
    x = g.input(g.values(dtype, (batch, channels, length), special=False))
    w = g.input(g.values(dtype, (channels, 1, k), special=False))
    g.input(g.values(dtype, (channels,), special=False) if g.chance() else None)
    g.input(g.values(dtype, (batch, channels, k - 1), special=False)
            if g.chance() and k > 1 else None)
    top = max(bounds.most(i.value) for i in g.inputs if i.value is not None)
    # silu's slope is below 1.1.
    g.sum_tolerance(k + 1, 1.1, top, w, extra=top, ulps=bounds.FUNCTION)
    g.outputs = 2


# ---- recurrent networks

@op("RNN", "GRU", "LSTM")
def recurrent(g):
    dtype = g.dtype("T")
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[g.name]
    batch, steps, width, hidden = g.int(1, 3), g.int(1, 5), g.int(1, 5), g.pick([1, 2, 3, 8, 9])
    direction = g.attr("direction", ["forward", "reverse", "bidirectional"], 0.6)
    both = direction in ("bidirectional", b"bidirectional")
    ways = 2 if both else 1
    g.attrs["hidden_size"] = hidden
    layout = g.attr("layout", [0, 1], 0.3) if g.has("layout") else 0
    if g.name == "GRU":
        g.attr("linear_before_reset", [0, 1])
    if g.name == "LSTM" and g.chance(0.2):
        g.attrs["input_forget"] = 1
    if g.chance(0.25):
        g.attrs["clip"] = g.pick([0.3, 1.0, 5.0])
    if g.chance(0.4):
        # Those without factors of their own, whose defaults the peers don't share; a gate that
        # is no sigmoid lets the state grow without bound.
        gate, free = ["Sigmoid", "HardSigmoid"], ["Relu", "Tanh", "Sigmoid", "Elu", "Softsign"]
        lists = {"RNN": [free], "GRU": [gate, free], "LSTM": [gate, free, free]}[g.name] * ways
        g.attrs["activations"] = [g.pick(one) for one in lists]
    shape = (batch, steps, width) if layout else (steps, batch, width)
    draw = lambda *s: g.real(dtype, s, special=False) * np.asarray(0.5, dtype)  # noqa: E731
    g.input(draw(*shape).astype(dtype))
    g.input(draw(ways, gates * hidden, width).astype(dtype))
    g.input(draw(ways, gates * hidden, hidden).astype(dtype))
    g.input(draw(ways, 2 * gates * hidden).astype(dtype) if g.chance(0.7) else None)
    lengths = g.chance(0.35)
    g.input(g.rng.integers(1, steps + 1, batch).astype(np.int32) if lengths else None)
    state = (batch, ways, hidden) if layout else (ways, batch, hidden)
    g.input(draw(*state).astype(dtype) if g.chance() else None)
    if g.name == "LSTM":
        g.input(draw(*state).astype(dtype) if g.chance() else None)
        g.input(draw(ways, 3 * hidden).astype(dtype) if g.chance(0.3) else None)
    # The reference evaluator has a part of these operators only: a formula stands behind.
    g.formula = lambda *given: formulas.recurrent(g.name, stored(g.attrs), *given)
    g.form_of["formula"] = {}
    if layout:
        g.peer_form = {"inputs": [time_first(i, k) for k, i in enumerate(g.inputs)],
                       "attrs": {k: v for k, v in g.attrs.items() if k != "layout"}}
        g.peer_after = lambda r: [batch_first(v) for v in r]
    elif g.version < 7:
        g.attrs.pop("output_sequence", None)
        g.peer_form = {"opset": 7}
    terms = width + hidden + 2
    g.tolerance = Tolerance(ulps=bounds.FUNCTION, scale=bounds.shaken(
        g.rng, lambda *v: formulas.recurrent(g.name, stored(g.attrs), *v),
        [i.value for i in g.inputs], terms))


def stored(attrs):
    """Attributes as a model holds them: numbers with a fraction are float."""
    return {k: float(np.float32(v)) if isinstance(v, float) else v for k, v in attrs.items()}


def time_first(i, position):
    """An input of layout 1 as that of layout 0: X and the initial states."""
    if not i.name or position not in (0, 5, 6):
        return i
    return dataclasses.replace(i, value=np.ascontiguousarray(i.value.swapaxes(0, 1)))


def batch_first(v):
    """Y and the last states of layout 0 as those of layout 1."""
    return v.transpose(2, 0, 1, 3) if v.ndim == 4 else v.swapaxes(0, 1)


# ---- attention

@op("Attention")
def attention(g):
    dtype = g.dtype("T1")
    g.types["T2"] = g.types["T1"]
    batch, heads, ratio = g.int(1, 2), g.int(1, 2), g.pick([1, 1, 2])
    q_heads, new, past, keys = heads * ratio, g.int(1, 5), g.pick([0, 0, 2, 3]), g.int(1, 5)
    size, v_size = g.pick([2, 4, 8]), g.pick([2, 4, 6])
    flat = g.chance(0.4)

    def draw(h, length, width):
        shape = (batch, length, h * width) if flat else (batch, h, length, width)
        return g.values(dtype, shape, special=False)
    if flat:
        g.attrs |= {"q_num_heads": q_heads, "kv_num_heads": heads}
    g.regime = "plain"
    total = keys + past
    causal = g.attr("is_causal", [0, 1])
    g.attr("scale", [0.5, 0.3], 0.3)
    g.attr("softcap", [2.0, 5.0], 0.2)
    for k in ("left_window_size", "right_window_size"):
        g.attr(k, [-1, 1, 2], 0.3)
    g.input(draw(q_heads, new, size))
    g.input(draw(heads, keys, size))
    g.input(draw(heads, keys, v_size))
    mask = None
    if g.chance(0.5):
        shape = g.pick([(new, total), (1, 1, new, total), (batch, 1, new, total),
                        (batch, q_heads, new, total)])
        mask_type = g.dtype("U", only=["bool", type_name_of(dtype)])
        if mask_type == bool:
            mask = g.rng.random(shape) < 0.7
            mask[..., 0] = True
        else:
            mask = g.values(mask_type, shape, special=False)
    g.input(mask)
    if past:
        g.input(g.values(dtype, (batch, heads, past, size), special=False))
        g.input(g.values(dtype, (batch, heads, past, v_size), special=False))
    g.outputs = g.pick([1, 3, 4]) if past else 1
    if g.outputs == 4:
        g.attr("qk_matmul_output_mode", [0, 1, 2, 3])
        if g.chance(0.7):
            g.outputs = 3
            g.attrs.pop("qk_matmul_output_mode", None)
    del causal
    if dtype == np.float64:  # the peers take the root of the scale in float
        g.peers = ("formula",)
    g.formula = lambda *given: formulas.attention(stored(g.attrs), (q_heads, heads), *given)
    q, k, v = (max(bounds.most(g.inputs[j].value), bounds.most(g.inputs[at].value)
                   if len(g.inputs) > at else 0) for j, at in ((0, 0), (1, 4), (2, 5)))
    off = bounds.attention(size, total, g.attrs.get("scale", size ** -0.5), q, k, v,
                           bias=bounds.most(mask) if mask is not None and mask.dtype != bool else 0)
    g.tolerance = Tolerance(ulps=4, scale=off)


def type_name_of(dtype):
    from .case import type_name
    return type_name(dtype)


@op("RotaryEmbedding")
def rotary(g):
    dtype = g.dtype()
    batch, heads, length, size = g.int(1, 2), g.int(1, 3), g.int(1, 4), g.pick([4, 6, 8])
    part = g.attr("rotary_embedding_dim", [0, 4], 0.4) or size
    g.attr("interleaved", [0, 1])
    flat = g.chance()
    if flat or g.chance(0.3):
        g.attrs["num_heads"] = heads
    positions = g.chance()
    g.input(g.values(dtype, (batch, length, heads * size) if flat else
                     (batch, heads, length, size), special=False))
    cache = (10, part // 2) if positions else (batch, length, part // 2)
    for _ in range(2):
        g.input(g.real(dtype, cache, low=-1, high=1))
    if positions:
        g.input(g.rng.integers(0, 10, (batch, length)).astype(np.int64))
    # x cos - y sin: a sum of two products.
    g.tolerance = Tolerance(ulps=2, scale=bounds.dot(2, g.inputs[0].value, 1.0))


@op("LinearAttention")
def linear_attention(g):
    dtype = g.dtype("T")
    state = g.dtype("S", only=["float"] if dtype != np.float64 else ["double", "float"])
    g.regime = "plain"
    rule = g.attr("update_rule", ["linear", "gated", "delta", "gated_delta"])
    rule = rule.decode() if isinstance(rule, bytes) else rule
    batch, heads, ratio, length = g.int(1, 2), g.int(1, 2), g.pick([1, 1, 2]), g.int(1, 5)
    dk, dv = g.pick([2, 4]), g.pick([2, 4])
    g.attrs |= {"q_num_heads": heads * ratio, "kv_num_heads": heads}
    g.attr("scale", [0.5, 0.3])
    g.attr("chunk_size", [64, 16])
    small = np.asarray(0.5, dtype)
    for h, d in ((heads * ratio, dk), (heads, dk), (heads, dv)):
        g.input((g.values(dtype, (batch, length, h * d), special=False) * small).astype(dtype))
    g.input(g.values(state, (batch, heads, dk, dv), special=False) if g.chance() else None)
    gated = "gated" in rule
    g.input(g.real(dtype, (batch, length, heads * g.pick([1, dk])), low=-1, high=-0.01)
            if gated else None)
    g.input(g.real(dtype, (batch, length, g.pick([1, heads])), low=0.1, high=0.9)
            if "delta" in rule else None)
    if g.inputs[3].value is None:
        g.types["S"] = g.types["T"]
    from .ms_attention import state_bound
    q, k, v, past = (i.value for i in g.inputs[:4])
    g.tolerance = Tolerance(ulps=4, scale=state_bound(
        length, dk, g.attrs.get("scale", dk ** -0.5), q, k, v, past))
    g.outputs = 2


# ---- transforms

@op("DFT")
def dft(g):
    dtype = g.dtype("T1")
    g.types.setdefault("T2", "tensor(int64)")
    rank = g.int(3, 4)
    shape = list(g.shape(rank - 1, empty=False)) + [g.pick([1, 2])]
    axis = g.int(1, rank - 2) if g.version < 20 else g.int(-rank, rank - 2)
    if axis % rank == rank - 1:
        raise Redraw
    inverse = g.attr("inverse", [0, 1])
    onesided = g.attr("onesided", [0, 1])
    if inverse and onesided or (onesided and shape[-1] == 2):
        raise Redraw
    x = g.input(g.real(dtype, shape, special=False))
    length = np.array(g.pick([shape[axis], g.int(1, 12)]), g.dtype("T2")) if g.chance() else None
    g.input(length, view=False)
    if g.version < 20:
        g.attrs["axis"] = axis
    else:
        g.input(np.array(axis, np.int64) if axis != -2 or g.chance() else None, view=False)
    # A transform of n terms, by definition or by stages of at most 4 operations each on every term;
    # twiddle factors are off by an eps.
    g.sum_tolerance(2 * max(shape[axis], 12), 4.0, x)
    # onnxruntime computes double in float, and its error grows with the square of the length.
    g.peers = ("formula",)
    g.formula = lambda x, n=None, _=None: [fourier(x, axis, n, inverse, onesided)]


def fourier(x, axis, length, inverse, onesided):
    """[..., 1 or 2] along an axis, cut or filled with zeros to `length`."""
    x = formulas.double(x)
    z = x[..., 0] + (1j * x[..., 1] if x.shape[-1] == 2 else 0)
    axis = axis % x.ndim
    n = x.shape[axis] if length is None else int(length)
    out = np.fft.ifft(z, n, axis) if inverse else np.fft.fft(z, n, axis)
    if onesided:
        out = out.take(range(n // 2 + 1), axis)
    return np.stack([out.real, out.imag], -1)


@op("STFT")
def stft(g):
    dtype = g.dtype("T1")
    t2 = g.dtype("T2")
    length, frame, step = g.int(8, 40), g.int(2, 8), g.int(1, 4)
    batch = g.int(1, 2)
    onesided = g.attr("onesided", [0, 1])
    complex_ = not onesided and g.chance(0.3)
    x = g.input(g.real(dtype, (batch, length, 2 if complex_ else 1), special=False))
    g.input(np.array(step, t2), view=False)
    window_given = g.chance(0.6)
    g.input(g.real(dtype, (frame,), low=0.1, high=1) if window_given else None)
    g.input(np.array(frame, t2) if not window_given or g.chance() else None, view=False)
    g.sum_tolerance(2 * frame, 4.0, x)  # as a DFT of the frame


@op("HannWindow", "HammingWindow", "BlackmanWindow")
def window_function(g):
    import onnx
    t1 = g.dtype("T1")
    out = g.attr("output_datatype", [1, 11, 10, 16])
    g.types["T2"] = f"tensor({onnx.TensorProto.DataType.Name(out).lower()})"
    g.attr("periodic", [0, 1])
    g.input(np.array(g.int(2, 40), t1), view=False)
    g.promote = False
    periodic = g.attrs.get("periodic", 1)
    if out in (10, 16):  # the peers round each step to the type
        g.peers = ("formula",)
    g.formula = lambda n: [windowed(g.name, int(n), periodic)]
    # cos of an argument k * 2 pi / n, off by an eps of at most 4 pi; coefficients add up to 1.
    g.tolerance = Tolerance(ulps=2, scale=16, in_float=True)  # the peers' constants are float


def windowed(name, n, periodic):
    at = 2 * np.pi * np.arange(n) / (n if periodic else n - 1)
    if name == "HannWindow":
        return 0.5 - 0.5 * np.cos(at)
    if name == "HammingWindow":
        return 25 / 46 - 21 / 46 * np.cos(at)
    return 0.42 - 0.5 * np.cos(at) + 0.08 * np.cos(2 * at)


@op("MelWeightMatrix")
def mel(g):
    import onnx
    t1, t2 = g.dtype("T1"), g.dtype("T2", only=["float"])
    out = g.attr("output_datatype", [1, 11, 10])
    g.types["T3"] = f"tensor({onnx.TensorProto.DataType.Name(out).lower()})"
    for v in (g.int(2, 10), g.pick([16, 32, 64]), g.pick([8000, 8192, 16000])):
        g.input(np.array(v, t1), view=False)
    low = g.pick([0.0, 20.0, 300.0])
    g.input(np.array(low, t2), view=False)
    g.input(np.array(g.pick([2000.0, 4000.0]), t2), view=False)
    g.promote = False
    # Bins are exact or a band apart; the slopes between them quotients of differences of hertz,
    # each off by an eps of the highest, over differences of at least one bin.
    g.tolerance = Tolerance(ulps=bounds.FUNCTION, scale=16, in_float=True)
