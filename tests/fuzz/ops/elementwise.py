"""elementwise.py - operators that compute each element alone, with and without broadcasting."""
import numpy as np

from . import bounds, formulas
from .case import Input, Redraw, Tolerance, op


def unary(g, special=True, **bounds):
    dtype = g.dtype("T" if g.schema.inputs[0].type_str == "T" else g.schema.inputs[0].type_str)
    return g.input(g.values(dtype, g.shape(), special, **bounds))


@op("Abs", "Ceil", "Floor", "Neg", "Sign", "Sqrt", "Reciprocal", "Relu", "Not", "BitwiseNot", "Exp",
    "Log", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh",
    "Tanh", "Softplus", "Softsign", "Round")
def plain_unary(g):
    unary(g)
    if g.name in ("Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Asinh", "Acosh", "Atanh", "Tanh",
                  "Sinh", "Cosh", "Exp", "Log", "Softplus"):
        # A few ULP, or an eps near a zero (here 6e-8 in float), on either side.
        g.tolerance = Tolerance(ulps=bounds.FUNCTION, scale=2)
    elif g.name in ("Reciprocal", "Sqrt", "Softsign"):
        g.tolerance = Tolerance(ulps=2)  # one or two correctly rounded operations


# In double: onnxruntime's and the reference evaluator's erf and factors are float.
CURVES = {"Sigmoid": lambda x: 1 / (1 + np.exp(-x)), "Erf": formulas.erf,
          "Mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
          "HardSwish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1)}


@op("Sigmoid", "Erf", "Mish", "HardSwish")
def curves(g):
    if unary(g, special="finite" if g.name == "Mish" else True).dtype == np.float64:
        curve = CURVES[g.name]
        g.peers, g.formula = ("formula",), lambda x: [curve(x)]
    g.tolerance = Tolerance(ulps=bounds.FUNCTION, scale=1)
    if g.name == "Erf":
        x = g.inputs[0].value
        if x.dtype.kind in "iu":  # between, it depends on the precision whether it truncates to 1
            g.inputs[0].value = np.where((np.abs(x.astype(float)) < 7), 0, x).astype(x.dtype)


@op("Gelu")
def gelu(g):
    g.attr("approximate", ["none", "tanh"])
    tanh = g.attrs.get("approximate", "none") == "tanh"
    if unary(g).dtype == np.float64:  # the peers' constants are float
        g.peers, g.formula = ("formula",), lambda x: [gelu_of(x, tanh)]
    # Stated for gelu: 1.2e-7 |x|, one eps, here; the peer's erf and tanh as much.
    g.tolerance = Tolerance(ulps=bounds.FUNCTION, scale=2 * bounds.magnitude(g.inputs[0].value))


def gelu_of(x, tanh):
    with np.errstate(all="ignore"):
        if tanh:
            return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))
        return 0.5 * x * (1 + formulas.erf(x / np.sqrt(2)))


@op("LeakyRelu", "Elu", "Selu", "Celu", "HardSigmoid", "ThresholdedRelu", "Swish", "Shrink")
def with_factors(g):
    for name in ("alpha", "beta", "gamma", "bias", "lambd"):
        g.attr(name, [0.5, 1.0, 0.01, 2.0] + ([-0.3] if g.name in ("LeakyRelu", "Swish") else []))
    dtype = g.dtype(g.schema.inputs[0].type_str)
    # Integers beyond what a double holds are converted in no specified way.
    x = unary(g, special=dtype.kind not in "iu")
    # Products with a factor of at most 2 and a sum with another, which may cancel; exp - 1 near
    # zero, off by an eps of its terms; Swish is stated to 1.2e-7 |x|.
    g.tolerance = Tolerance(ulps=bounds.FUNCTION, scale={
        "LeakyRelu": 0.0, "ThresholdedRelu": 0.0, "Shrink": 0.0, "Swish": 2 * bounds.magnitude(x),
        "HardSigmoid": 4.0}.get(g.name, 8.0))


@op("IsNaN", "IsInf")
def tests_of_floats(g):
    g.attr("detect_negative", [0, 1])
    g.attr("detect_positive", [0, 1])
    g.regime = "special"
    unary(g, True if g.chance(0.9) else "finite")


@op("Clip")
def clip(g):
    dtype = g.dtype()
    x = g.input(g.values(dtype, g.shape()))
    low, high = sorted(g.values(dtype, (2,), special=False).tolist())
    if g.has("min"):
        g.attr("min", [float(low)])
        g.attr("max", [float(high)])
        return x
    for bound in (low, high):
        g.input(np.asarray(bound).astype(dtype) if g.chance(0.7) else None, view=False)
    return x


@op("Identity", "Shape", "Size")
def looks(g):
    variable = g.schema.inputs[0].type_str
    dtype = g.dtype(variable)
    x = g.input(g.values(dtype, g.shape()))
    g.attr("start", lambda: g.int(-x.ndim - 2, x.ndim + 2))
    g.attr("end", lambda: g.int(-x.ndim - 2, x.ndim + 2))
    if g.name == "Shape":
        rank, (first, last) = x.ndim, (g.attrs.get(k, d) for k, d in (("start", 0), ("end", x.ndim)))
        first, last = (min(max(v + rank if v < 0 else v, 0), rank) for v in (first, last))
        g.formula = lambda x: [np.array(x.shape[first:last], np.int64)]


# ---- two operands

def two_shapes(g):
    """Shapes that broadcast to each other by the rules of this version."""
    if g.has("axis") and g.has("broadcast"):  # before opset 7: B is a run of A's axes
        a = g.shape()
        if not g.chance(0.6):
            return a, a
        g.attrs["broadcast"] = 1
        first = g.int(0, len(a))
        last = g.int(first, len(a))
        if last < len(a) or first == last:
            g.attrs["axis"] = first
        return a, a[first:last]
    full = g.shape()
    a, b = (full, g.narrower(full)) if g.chance(0.6) else (g.narrower(full), g.narrower(full))
    return (b, a) if g.chance() else (a, b)


def two(g, special=True, **bounds):
    a_type = g.dtype(g.schema.inputs[0].type_str)
    b_type = g.dtype(g.schema.inputs[1].type_str)
    a, b = two_shapes(g)
    return g.values(a_type, a, special, **bounds), g.values(b_type, b, special, **bounds)


def give(g, a, b):
    """Both operands; peers get the old axis-wise broadcast as the one of opset 7, which every
    kernel has."""
    a, b = g.input(a), g.input(b)
    if g.version >= 7 or "broadcast" not in g.attrs:
        return
    axis = g.attrs.get("axis", a.ndim - b.ndim)
    b = b.reshape(b.shape + (1,) * (a.ndim - axis - b.ndim))
    others = {k: v for k, v in g.attrs.items() if k not in ("axis", "broadcast")}
    kind = g.inputs[0].type
    g.peer_form = dict(opset=7, attrs=others, inputs=[Input("x0", a, kind), Input("x1", b, kind)])


@op("Add", "Sub", "Mul", "And", "Or", "Xor", "Equal", "Greater", "Less", "GreaterOrEqual",
    "LessOrEqual", "BitwiseAnd", "BitwiseOr", "BitwiseXor")
def plain_binary(g):
    a, b = two(g)
    if g.name in ("Equal", "GreaterOrEqual", "LessOrEqual") and a.size and b.size and g.chance():
        b = np.broadcast_to(a.reshape(-1)[0], b.shape).copy()
    give(g, a, b)


def no_zero(x):
    """Integer division by zero, and of the lowest number by -1, is undefined."""
    if x.dtype.kind in "iu":
        x = np.where((x == 0) | ((x == -1) & (x.dtype.kind == "i")), 3, x).astype(x.dtype)
    return x


@op("Div")
def div(g):
    a, b = two(g)
    give(g, a, no_zero(b))


@op("Mod")
def mod(g):
    a, b = two(g)
    if a.dtype.kind in "iu":
        g.attr("fmod", [0, 1])
    else:
        g.attrs["fmod"] = 1
        b = np.where(b == 0, 1, b).astype(b.dtype) if g.chance(0.7) else b
    give(g, a, no_zero(b))


@op("Pow")
def power(g):
    a_type = g.dtype("T")
    b_type = g.dtype("T1" if g.schema.inputs[1].type_str == "T1" else "T")
    a, b = two_shapes(g)
    if a_type.kind in "iu":
        # A result beyond the integer type, and a negative power of an integer, are undefined.
        x = g.values(a_type, a, low=-5, high=5)
        y = g.values(b_type, b, False, low=0, high=3)
        y = np.floor(y.astype(np.float64)).astype(b_type)
    else:
        x = g.values(a_type, a)
        y = g.values(b_type, b, low=-3, high=4) if b_type.kind in "iu" else g.values(b_type, b)
    give(g, x, y)
    # Results of pow, or exp(y log x) with a logarithm in two parts: correct to a few ULP.
    g.tolerance = Tolerance(ulps=bounds.FUNCTION)


@op("BitShift")
def bit_shift(g):
    g.attrs["direction"] = g.pick(["LEFT", "RIGHT"])
    dtype = g.dtype()
    a, b = two_shapes(g)
    g.input(g.values(dtype, a))
    # A shift by the width of the type or more is undefined.
    g.input(g.whole(dtype, b, low=0, high=8 * dtype.itemsize - 1))


@op("PRelu")
def prelu(g):
    dtype = g.dtype()
    if g.version < 7:  # slope: one number, or one per channel (axis 1)
        shape = g.shape(low=2)
        slope = (1,) if g.chance(0.4) else (shape[1],)
    else:
        shape = g.shape(low=1)
        slope = g.narrower(shape)
    x = g.input(g.values(dtype, shape))
    s = g.input(g.values(dtype, slope))
    g.formula = lambda x, s: [np.where(x < 0, x * s.reshape(
        (-1,) + (1,) * (x.ndim - 2) if g.version < 7 and s.size > 1 else s.shape), x)]
    if g.version < 7:
        kind = g.inputs[0].type
        g.peer_form = {"opset": 7, "inputs": [Input("x0", x, kind), Input(
            "x1", s.reshape((-1,) + (1,) * (x.ndim - 2)), kind)]}


@op("Max", "Min", "Sum", "Mean")
def many(g):
    dtype = g.dtype()
    full = g.shape()
    count = g.int(1, 4)
    shapes = [full] * count if g.version < 8 else \
        [full if k == 0 else g.narrower(full) for k in range(count)]
    # Sums of the largest numbers overflow in one order and not in another.
    xs = [g.values(dtype, s, special="finite sums" if g.name in ("Sum", "Mean") else True)
          for s in shapes]
    for x in g.rng.permutation(count):
        g.input(xs[x])
    if g.name in ("Sum", "Mean"):
        g.sum_tolerance(count, total=sum(bounds.most(x) for x in xs))


@op("Where")
def where(g):
    dtype = g.dtype()
    full = g.shape()
    g.input(g.values(bool, g.narrower(full)))
    g.input(g.values(dtype, full if g.chance(0.6) else g.narrower(full)))
    g.input(g.values(dtype, g.narrower(full)))


@op("SwiGLU")
def swiglu(g):
    dtype = g.dtype()
    shape = g.shape(low=1)
    g.attr("alpha", [1.0, 0.5, 1.702])
    a, b = g.input(g.values(dtype, shape)), g.input(g.values(dtype, shape))
    # Stated for swish: 1.2e-7 |a|, on either side, times |b|.
    with np.errstate(over="ignore"):
        g.tolerance = Tolerance(ulps=bounds.FUNCTION,
                                scale=2 * bounds.magnitude(a) * bounds.magnitude(b))


# ---- conversions

def castable(g, source, target):
    """Values that the target holds: a float beyond an integer's range is undefined."""
    import ml_dtypes
    shape = g.shape()
    whole = target.kind in "iu" or target.name.startswith(("int", "uint"))
    if source == object:
        if target == bool:
            raise Redraw  # which texts are true is not specified
        if whole:
            return g.text(shape, [t for t in ("0", "1", "3", "7")
                                  if int(t) <= int(ml_dtypes.iinfo(target).max)])
        return g.text(shape, ["0", "1.5", "-3e2", "nan", "inf", "-inf", "1e-5", "12"])
    if whole and "float" in source.name:
        info = ml_dtypes.iinfo(target)
        top = min(float(info.max), float(ml_dtypes.finfo(source).max), 1e6)
        low = max(float(info.min), -top)
        if source.name == "float8_e8m0fnu":
            return np.exp2(g.rng.integers(-3, 1 if info.max < 8 else 3, shape)).astype(source)
        x = g.rng.uniform(low, top * 0.99, shape)
        # Which way a fraction goes on its way to fewer than 8 bits is not defined.
        return (np.trunc(x) if info.bits < 8 else x).astype(source)
    if target.name == "float8_e8m0fnu":  # which negative numbers become is not defined
        return np.abs(g.values(source, shape)).astype(source)
    return g.values(source, shape)


@op("Cast")
def cast(g):
    source, target = g.dtype("T1"), g.dtype("T2")
    cast_rules(g, source, target)
    from onnx import helper
    g.attrs["to"] = helper.np_dtype_to_tensor_dtype(target)
    g.attr("saturate", [0, 1])
    g.attr("round_mode", ["up", "down", "nearest"])
    g.input(castable(g, source, target))


def cast_rules(g, source, target):
    g.promote = False
    names = {source.name, target.name}
    if target.name == "object" and ("float" in source.name or source == bool):
        raise Redraw  # how many digits a float prints, and how a bool reads, is not specified


@op("CastLike")
def cast_like(g):
    source, target = g.dtype("T1"), g.dtype("T2")
    cast_rules(g, source, target)
    g.attr("saturate", [0, 1])
    g.attr("round_mode", ["up", "down", "nearest"])
    g.input(castable(g, source, target))
    g.input(g.values(target, g.shape()))


@op("BitCast")
def bit_cast(g):
    from onnx import helper
    source, target = g.dtype("T1"), g.dtype("T2")
    g.promote = False
    import ml_dtypes
    if object in (source, target) or "complex" in source.name + target.name:
        raise Redraw
    bits = [1 if t == bool else ml_dtypes.iinfo(t).bits if "int" in t.name else
            ml_dtypes.finfo(t).bits for t in (source, target)]
    if bits[0] != bits[1]:
        raise Redraw
    g.attrs["to"] = helper.np_dtype_to_tensor_dtype(target)
    g.input(g.values(source, g.shape()))
