"""reduce.py - operators along axes: reductions, arg, cumulative sums, softmax, norms, TopK."""
import numpy as np

from . import bounds, formulas
from .case import Redraw, Tolerance, op


def axes_of(g, rank, p=0.8):
    """A random set of axes as attribute or input (None: all of them)."""
    if not g.chance(p) or rank == 0:
        return None
    count = g.int(1, rank)
    axes = sorted(int(a) for a in g.rng.choice(rank, count, replace=False))
    if g.version >= 11:  # negative axes
        axes = [a - rank if g.chance(0.3) else a for a in axes]
    return axes


@op("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMin",
    "ReduceMean", "ReduceProd", "ReduceSum", "ReduceSumSquare")
def reductions(g):
    dtype = g.dtype()
    # An empty set has a defined result from version 13 (ReduceSum) and 18 and 20 on only.
    g.empty_ok = (g.version >= 18 or (g.name == "ReduceSum" and g.version >= 13)) and \
        g.name not in ("ReduceMean",)
    shape = g.shape()
    exact = g.name in ("ReduceMax", "ReduceMin")
    special = exact or "finite sums"
    if dtype.kind in "iu" and not exact:
        special = g.name in ("ReduceSum", "ReduceProd") and "wraps"
    if g.name == "ReduceProd" and "float" in dtype.name:
        x = g.values(dtype, shape, low=-1.3, high=1.3)
        if x.size < 50:  # a longer product may underflow before it meets an infinity, or behind it
            x = g.sprinkle(x)
    elif g.name in ("ReduceLogSum",):
        x = g.values(dtype, shape, low=1 if dtype.kind in "iu" else 0.1, high=5)
    elif g.name in ("ReduceLogSumExp",) and dtype.kind in "iu":
        x = g.values(dtype, shape, low=0, high=15)
    elif g.name == "ReduceLogSumExp":
        x = g.values(dtype, shape, "finite")
    else:
        x = g.values(dtype, shape, special)
    g.attr("keepdims", [0, 1])
    axes = axes_of(g, len(shape))
    x = g.input(x)
    if g.has("axes"):
        if axes is not None:
            g.attrs["axes"] = axes
    else:
        g.attr("noop_with_empty_axes", [0, 1])
        if axes is not None:
            g.input(np.array(axes, np.int64), view=False)
        elif g.chance(0.3):
            g.input(np.array([], np.int64), view=False)
    if not exact:
        reduced_bound(g, x, axes)
    whole_mean(g, dtype)


def reduced_bound(g, x, axes):
    """Sums by bounds.sums; a product's factors round one by one. A logarithm turns the relative
    error of a sum of positive terms into an absolute one, a root halves it; exp adds what its
    argument, a difference of at most 2 |x|, is off by."""
    axes = axes or None
    count = x.size if axes is None else int(np.prod([x.shape[a] for a in axes]))
    deep, name = bounds.depth(count), g.name
    if name == "ReduceProd":
        g.tolerance = Tolerance(ulps=count + 1)
    elif name == "ReduceL2":
        g.tolerance = Tolerance(ulps=deep / 2 + 4)
    elif name == "ReduceLogSum":
        g.tolerance = Tolerance(ulps=bounds.FUNCTION, scale=deep + 1)
    elif name == "ReduceLogSumExp":
        g.tolerance = Tolerance(ulps=bounds.FUNCTION,
                                scale=deep + bounds.FUNCTION + 4 * bounds.most(x))
    else:
        total = bounds.along(x, axes, 2 if name == "ReduceSumSquare" else 1)
        g.sum_tolerance(count, total=total / (max(count, 1) if name == "ReduceMean" else 1))


def whole_mean(g, dtype):
    """Integer results of a division or a root: the peers round in different ways."""
    if dtype.kind in "iu" and g.name in ("ReduceMean", "ReduceL2", "ReduceLogSum",
                                         "ReduceLogSumExp"):
        g.tolerance.steps = 1


@op("ArgMax", "ArgMin")
def arg(g):
    dtype = g.dtype()
    g.empty_ok = False
    shape = g.shape(low=1)
    # Which index NaN has is not specified.
    x = g.values(dtype, shape)
    g.shapes_only = dtype.kind not in "iu" and bool(np.isnan(x.astype(np.float64)).any())
    axis = g.attr("axis", lambda: g.int(-len(shape) if g.version >= 11 else 0, len(shape) - 1))
    g.attr("keepdims", [0, 1])
    g.attr("select_last_index", [0, 1])
    assert axis is not None
    g.input(x)


@op("CumSum", "CumProd")
def cumulative(g):
    dtype = g.dtype()
    shape = g.shape(low=1)
    axis = g.int(-len(shape), len(shape) - 1)
    g.attr("exclusive", [0, 1])
    g.attr("reverse", [0, 1])
    if g.name == "CumProd" and "float" in dtype.name:
        x = g.input(g.sprinkle(g.values(dtype, shape, low=-1.3, high=1.3)))
    else:
        x = g.input(g.values(dtype, shape, "finite sums"))
    index = g.dtype("T2")
    g.input(np.array(axis, index), view=False)
    # One after the other along the axis, on both sides.
    g.tolerance = Tolerance(ulps=2, scale=(shape[axis] + 1) * bounds.along(x, [axis]))
    if g.name == "CumProd":
        g.tolerance = Tolerance(ulps=shape[axis] + 1)


@op("Softmax", "LogSoftmax", "Hardmax")
def softmax(g):
    dtype = g.dtype()
    shape = g.shape(low=1)
    x = g.values(dtype, shape, special=g.name != "Hardmax")  # which of NaN is the largest is open
    g.input(np.where(x == np.inf, -np.inf, x).astype(dtype))  # inf / inf: the formula has no value
    g.attr("axis", lambda: g.int(-len(shape) if g.version >= 11 else 0, len(shape) - 1))
    axis = g.attrs.get("axis", 1 if g.version < 13 else -1)
    if not -len(shape) <= axis < len(shape):
        raise Redraw
    # exp's argument, x - max, is off by an eps of 2 |x|, which is relative behind exp; its own error,
    # the sum's and the quotient's add up. A logarithm makes all of it absolute.
    rows = int(np.prod(shape[axis % len(shape):])) if g.version < 13 else shape[axis]
    off = bounds.FUNCTION + bounds.depth(rows) + 4 * bounds.most(g.inputs[0].value)
    g.tolerance = Tolerance(ulps=2, scale=off) if g.name == "LogSoftmax" else Tolerance(ulps=off)
    if g.name == "Softmax" and dtype == np.float16:
        # ONNX's function body, whose test this follows, rounds after exp, sum and division.
        g.tolerance.ulps += 3 * bounds.unit(dtype)
    g.formula = lambda x: [rows_of(g.name, x, axis, g.version < 13)]
    if g.name == "LogSoftmax" and dtype == np.float64:
        g.peers = ("formula",)  # onnxruntime makes a number of rows with NaN, in double only


def rows_of(name, x, axis, flat):
    """Softmax and its kin along an axis; before version 13 over all axes from that one on."""
    shape = x.shape
    if flat:
        x, axis = x.reshape(int(np.prod(shape[:axis % len(shape)])), -1) if x.size else x, -1
    if name == "Hardmax":
        best = np.zeros(x.shape)
        if x.size:
            np.put_along_axis(best, np.argmax(x, axis, keepdims=True), 1, axis)
    else:
        best = formulas.softmax(x, axis, name == "LogSoftmax")
    return best.reshape(shape)


@op("LpNormalization")
def lp_norm(g):
    dtype = g.dtype()
    shape = g.shape(low=1)
    x = g.values(dtype, shape, special="finite sums")
    g.input(np.where(np.abs(x) < 1e-4, 0, x).astype(dtype))  # whose squares a type doesn't hold
    g.attr("axis", lambda: g.int(-len(shape), len(shape) - 1))
    p, axis = g.attr("p", [1, 2]) or 2, g.attrs.get("axis", -1)
    g.formula = lambda x: [formulas.double(x) / np.where(
        (length := (np.abs(formulas.double(x)) ** p).sum(axis, keepdims=True) ** (1 / p)) == 0, 1,
        length)]
    # A sum of positive terms, relatively off by its length, a root and a quotient.
    g.tolerance = Tolerance(ulps=shape[axis] + 8)


@op("MeanVarianceNormalization")
def mvn(g):
    dtype = g.dtype()
    g.empty_ok = False
    axes = None
    shape = g.shape(rank=4)
    if g.chance():
        axes = axes_of(g, 4, p=1)
        g.attrs["axes"] = axes
    else:
        axes = [0, 2, 3]
    x = g.input(g.sprinkle(g.rng.standard_normal(shape).astype(dtype)))
    if np.any(x.astype(np.float64).var(tuple(axes)) == 0):
        raise Redraw  # 0 / 0 by the formula, 0 by the function's body, which adds 1e-9
    rest = [k for k in range(4) if k not in [a % 4 for a in axes]]
    rows = np.ascontiguousarray(x.transpose(*rest, *[a % 4 for a in axes]))
    norm_tolerance(g, rows, int(np.prod([shape[a] for a in axes])), 1e-9)


def norm_tolerance(g, rows, count, epsilon, scale=1.0, shift=0.0, mean=True, in_float=False):
    """bounds.norm for rows of `count` elements. in_float: statistics that are float by
    stash_type 1, in double, too."""
    off = bounds.norm(rows, count, scale, epsilon, shift, mean)
    if off > 2 ** 20:
        raise Redraw  # rows that are nearly constant: the bound would cover everything
    g.tolerance = Tolerance(ulps=bounds.FUNCTION, scale=off, in_float=in_float)


@op("LayerNormalization", "RMSNormalization")
def layer_norm(g):
    dtype = g.dtype("T")
    g.empty_ok = False
    shape = g.shape(low=1)
    axis = g.attr("axis", lambda: g.int(-len(shape), len(shape) - 1))
    start = axis % len(shape)
    tail = shape[start:]
    if np.prod(tail) < 2:
        raise Redraw
    g.attr("epsilon", [1e-5, 1e-2, 0.5])
    if g.has("stash_type"):
        g.attrs["stash_type"] = 1
    x = g.input(g.sprinkle(g.rng.standard_normal(shape).astype(dtype)))
    plain = g.name == "LayerNormalization"
    if not plain:
        g.types["V"] = g.types["T"]
    scale = g.input(g.values(dtype, g.narrower(tail) if g.chance(0.3) else tail, special=False))
    shift = None
    if plain:
        shift = g.input(g.values(dtype, tail, special=False) if g.chance(0.7) else None)
        g.types["U"] = "tensor(float)"
        g.outputs = g.pick([1, 1, 2, 3])
        if g.regime == "special" and g.outputs > 1:
            g.peers = ("reference",)  # onnxruntime's mean of a row with an infinity is NaN
    norm_tolerance(g, x, int(np.prod(tail)), g.attrs.get("epsilon", 1e-5), bounds.most(scale),
                   bounds.most(shift), plain, dtype == np.float64)
    if dtype == np.dtype("bfloat16") or dtype == np.float16:
        g.outputs = 1


@op("GroupNormalization")
def group_norm(g):
    dtype = g.dtype()
    g.empty_ok = False
    groups, width = g.int(1, 3), g.int(1, 3)
    shape = (g.few(1, 3), groups * width) + g.shape(low=1, high=2)
    if np.prod(shape[2:]) * width < 2:
        raise Redraw
    g.attrs["num_groups"] = groups
    g.attr("epsilon", [1e-5, 1e-2])
    x = g.input(g.sprinkle(g.rng.standard_normal(shape).astype(dtype)))
    many = groups if g.version < 21 else shape[1]
    scale, shift = (g.input(g.values(dtype, (many,), special=False)) for _ in range(2))
    norm_tolerance(g, x, int(np.prod(shape[1:])) // groups, g.attrs.get("epsilon", 1e-5),
                   bounds.most(scale), bounds.most(shift), in_float=dtype == np.float64)


@op("InstanceNormalization")
def instance_norm(g):
    dtype = g.dtype()
    g.empty_ok = False
    shape = g.shape(low=3, high=5)
    if np.prod(shape[2:]) < 2:
        raise Redraw
    g.attr("epsilon", [1e-5, 1e-2])
    x = g.input(g.sprinkle(g.rng.standard_normal(shape).astype(dtype)))
    scale, shift = (g.input(g.values(dtype, (shape[1],), special=False)) for _ in range(2))
    norm_tolerance(g, x, int(np.prod(shape[2:])), g.attrs.get("epsilon", 1e-5),
                   bounds.most(scale), bounds.most(shift), in_float=dtype == np.float64)


@op("BatchNormalization")
def batch_norm(g):
    dtype = g.dtype("T")
    shape = g.shape(low=2, high=5, empty=False)
    channels = shape[1]
    g.attr("epsilon", [1e-5, 1e-2])
    if g.has("is_test"):
        g.attrs["is_test"] = 1
    x = g.input(g.values(dtype, shape, "finite sums"))
    scale_type = mean_type = dtype
    for variable in ("T1", "T2", "U"):
        if any(i.type_str == variable for i in g.schema.inputs):
            g.types[variable] = g.types["T"]
    parts = [g.real(scale_type, (channels,), False), g.real(scale_type, (channels,), False),
             g.real(mean_type, (channels,), False),
             g.rng.uniform(0.3, 2, channels).astype(mean_type)]
    for p in parts:
        g.input(p)
    g.outputs = 1
    # (x - mean) * (scale / deviation) + shift, or x * a + b with a and b made first: each of at most
    # six roundings is one of (|x| + |mean|) scale / deviation or of the shift.
    scale, shift, mean, variance = (formulas.double(p) for p in parts)
    factor = bounds.most(scale / np.sqrt(variance + 1e-5))
    g.tolerance = Tolerance(ulps=2, scale=6 * ((bounds.most(x) + bounds.most(mean)) * factor +
                                               bounds.most(shift)))
    if g.attrs.get("training_mode"):
        raise Redraw


@op("LRN")
def lrn(g):
    dtype = g.dtype()
    shape = g.shape(rank=4 if g.chance(0.7) else g.int(3, 5))  # onnxruntime takes 4 only
    g.attrs["size"] = g.pick([1, 3, 5, 7])
    g.attr("alpha", [1e-4, 0.1, 1.0])
    g.attr("beta", [0.75, 0.5, 1.0, 2.0])
    g.attr("bias", [1.0, 2.0])
    g.input(g.values(dtype, shape, special=False))
    size, n = g.attrs["size"], shape[1]
    alpha, beta, bias = (float(np.float32(g.attrs.get(k, d))) for k, d in
                         (("alpha", 1e-4), ("beta", 0.75), ("bias", 1.0)))

    def formula(x):
        squares = formulas.double(x) ** 2
        near = [squares[:, max(c - (size - 1) // 2, 0):c + size // 2 + 1].sum(1) for c in range(n)]
        return [x / (bias + alpha / size * np.stack(near, 1).reshape(x.shape)) ** beta] \
            if x.size else [x]
    g.formula = formula
    # The sum over `size` channels may be slid along all n of them: off by 2 n of the largest
    # square, against at least the bias; the power multiplies that by beta.
    x = bounds.most(g.inputs[0].value)
    g.tolerance = Tolerance(ulps=beta * (2 * n * (alpha / size) * x * x / bias + size + 8) + 8)


@op("TopK")
def top_k(g):
    dtype = g.dtype()
    shape = g.shape(low=1)
    axis = g.attr("axis", lambda: g.int(-len(shape) if g.version >= 11 else 0, len(shape) - 1))
    if not -len(shape) <= axis < len(shape):
        raise Redraw
    k = g.int(0 if g.version > 1 else 1, shape[axis]) if shape[axis] else 0
    g.attr("largest", [0, 1])
    if g.attr("sorted", [0, 1]) == 0:
        g.attrs["sorted"] = 1  # the order is free otherwise
    # Where NaN stands is not specified; before 11 nor is the order of equal values.
    if g.version < 11:
        count = int(np.prod(shape))
        x = g.rng.permutation(count).reshape(shape).astype(dtype)
        if len(set(x.reshape(-1).astype(float).tolist())) < count:
            raise Redraw
    else:
        x = g.values(dtype, shape)
        g.shapes_only = dtype.kind not in "iu" and bool(np.isnan(x.astype(np.float64)).any())
    g.input(x)
    if g.has("k"):
        g.attrs["k"] = max(k, 1)
        if not shape[axis]:
            raise Redraw
    else:
        g.input(np.array([k], np.int64), view=False)
