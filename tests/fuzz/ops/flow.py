"""flow.py - sequences, optionals, subgraphs, texts, random draws and training steps."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from . import bounds, formulas
from .case import TEXTS, Redraw, Tolerance, np_type, op, type_name, type_proto


def i64(*values):
    return np.array(values, np.int64)


def element(g, variable):
    """The element type of a sequence variable, bound."""
    names = [t[len("seq(tensor("):-2] for t in g.allowed(variable) if t.startswith("seq(tensor(")]
    if not names:
        raise Redraw
    name = g.pick(names)
    g.types[variable] = f"seq(tensor({name}))"
    return np_type(name)


def give_sequence(g, dtype, count=None, shape=None):
    count = g.int(0, 4) if count is None else count
    items = [g.values(dtype, g.shape(high=3) if shape is None else shape) for _ in range(count)]
    return g.input(items, type=f"seq(tensor({type_name(dtype)}))")


def position(g, count, size, dtype=None):
    dtype = dtype or g.dtype("I")
    return np.array(g.int(-count, size - 1), dtype)


@op("SequenceConstruct")
def sequence_construct(g):
    dtype = g.dtype("T")
    g.types["S"] = f"seq(tensor({type_name(dtype)}))"
    for _ in range(g.int(1, 4)):
        g.input(g.values(dtype, g.shape(high=3)))


@op("SequenceEmpty")
def sequence_empty(g):
    name = g.pick(["float", "double", "int64", "string", "bool", "uint8"])
    g.types["S"] = f"seq(tensor({name}))"
    if name != "float" or g.chance():
        g.attrs["dtype"] = TensorProto.DataType.Value(name.upper())


@op("SequenceAt")
def sequence_at(g):
    dtype = element(g, "S")
    g.types["T"] = f"tensor({type_name(dtype)})"
    items = give_sequence(g, dtype, g.int(1, 4))
    g.input(position(g, len(items), len(items)), view=False)


@op("SequenceErase")
def sequence_erase(g):
    items = give_sequence(g, element(g, "S"), g.int(1, 4))
    if g.chance(0.7):
        g.input(position(g, len(items), len(items)), view=False)


@op("SequenceInsert")
def sequence_insert(g):
    dtype = element(g, "S")
    items = give_sequence(g, dtype)
    g.input(g.values(dtype, g.shape(high=3)))
    if g.chance(0.7):
        at = g.input(position(g, len(items), len(items) + 1), view=False)
        g.formula = lambda s, x, at: [s[:int(at) % (len(s) + (at >= 0))] + [x] +
                                      s[int(at) % (len(s) + (at >= 0)):]]
        del at


@op("SequenceLength")
def sequence_length(g):
    give_sequence(g, element(g, "S"))


@op("ConcatFromSequence")
def concat_from_sequence(g):
    dtype = element(g, "S")
    g.types["T"] = f"tensor({type_name(dtype)})"
    shape = list(g.shape(low=1, high=3))
    new = g.attr("new_axis", [0, 1])
    rank = len(shape) + bool(new)
    axis = g.attr("axis", lambda: g.int(-rank, rank - 1))
    items = []
    for _ in range(g.int(1, 4)):
        if not new:
            shape[axis] = g.dim()
        items.append(g.values(dtype, shape))
    g.input(items, type=f"seq(tensor({type_name(dtype)}))")


@op("SplitToSequence")
def split_to_sequence(g):
    dtype = g.dtype("T")
    shape = list(g.shape(low=1, high=3, empty=False))
    axis = g.attr("axis", lambda: g.int(-len(shape), len(shape) - 1))
    sizes = [g.int(1, 3) for _ in range(g.int(1, 4))]
    how = g.pick(["none", "scalar", "list"])
    if how == "list":
        shape[axis] = sum(sizes)
    g.input(g.values(dtype, shape))
    g.attr("keepdims", [0, 1])
    index = g.dtype("I")
    if how != "none":
        g.input(np.array(sizes if how == "list" else g.int(1, 4), index), view=False)
    g.types["S"] = f"seq(tensor({type_name(dtype)}))"


@op("Optional", "OptionalHasElement", "OptionalGetElement")
def optional(g):
    kind = g.pick(["tensor", "seq"])
    variable = "V" if g.name == "Optional" else "O"
    names = [t for t in g.allowed(variable)
             if t.startswith(kind if g.name == "Optional" else f"optional({kind}")]
    bare = g.name != "Optional" and g.version >= 18 and g.chance()
    text = g.pick(names)
    inner = text if g.name == "Optional" else text[len("optional("):-1]
    if bare and inner not in g.allowed(variable):
        raise Redraw
    dtype = np_type(inner.replace("seq(", "").replace("tensor(", "").rstrip(")"))
    value = g.values(dtype, g.shape(high=3)) if kind == "tensor" else \
        [g.values(dtype, g.shape(high=2)) for _ in range(g.int(0, 3))]
    g.types[variable] = inner if bare or g.name == "Optional" else text
    if g.name == "Optional":
        g.types["O"] = f"optional({inner})"
    else:
        g.types["V"] = inner
    from .case import Input
    absent = g.name == "OptionalHasElement" and not bare and g.chance(0.3)
    if absent:
        value = None
    g.inputs.append(Input("x0", value, g.types[variable], view=False, constant=False))
    g.promote = False


# ---- subgraphs

def info(name, dtype, shape=None):
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)),
                                         shape)


@op("If")
def if_(g):
    dtype = np.dtype(g.pick([np.float32, np.float32, np.int64, bool, np.float64]))
    g.types["V"] = f"tensor({type_name(dtype)})"
    g.input(np.array(g.chance()), view=False)
    branches = {}
    for name in ("then_branch", "else_branch"):
        value = numpy_helper.from_array(g.values(dtype, g.shape(high=3)), name + "_c")
        nodes = [helper.make_node("Constant", [], [name + "_k"], value=value),
                 helper.make_node("Identity", [name + "_k"], [name + "_y"])]
        if dtype == np.float32 and g.chance():
            nodes[1] = helper.make_node("Neg", [name + "_k"], [name + "_y"])
        branches[name] = helper.make_graph(nodes, name, [], [info(name + "_y", dtype)])
    g.attrs |= branches
    g.outputs = 1


@op("Loop")
def loop(g):
    """y = y * 2 + i, with a scanned output, until the trip count or a condition."""
    dtype = np.dtype(g.pick([np.float32, np.int64, np.float64]))
    kind = type_name(dtype)
    shape = g.shape(high=2)
    trips = g.pick([None, g.int(1, 5), g.int(1, 5)])
    limit = g.int(1, 5)  # a loop without a turn: its scanned shape is not specified
    with_condition = trips is None or g.chance()
    nodes = [helper.make_node("Cast", ["i"], ["n"], to=TensorProto.DataType.Value(kind.upper())),
             helper.make_node("Add", ["v", "v"], ["two"]),
             helper.make_node("Add", ["two", "n"], ["w"]),
             helper.make_node("Identity", ["w"], ["s"])]
    if with_condition:
        nodes += [helper.make_node("Constant", [], ["limit"],
                                   value=numpy_helper.from_array(i64(limit)[0], "limit")),
                  helper.make_node("Less", ["i", "limit"], ["go"])]
    else:
        nodes.append(helper.make_node("Identity", ["keep"], ["go"]))
    if g.opset < 9 or g.opset < 7:
        raise Redraw  # Less of int64 came with opset 9
    g.attrs["body"] = helper.make_graph(
        nodes, "body", [info("i", np.int64, []), info("keep", bool, []), info("v", dtype)],
        [info("go", bool, []), info("w", dtype), info("s", dtype)])
    from .case import Input
    g.input(None if trips is None else np.array(trips, np.int64), view=False)
    g.input(np.array(True) if trips is None or g.chance() else None, view=False)
    g.inputs.append(Input("x2", g.values(dtype, shape, special=False), f"tensor({kind})"))
    g.types["V"] = f"tensor({kind})"
    g.outputs = 2
    g.peers = ("onnxruntime",)


@op("Scan")
def scan(g):
    """Running sums, with a scanned input along a random axis, forwards or backwards."""
    if g.version < 9:
        raise Redraw
    dtype = np.dtype(g.pick([np.float32, np.int64, np.float64]))
    kind = type_name(dtype)
    shape = list(g.shape(low=1, high=3, empty=False))
    axis = g.int(0 if g.version < 11 else -len(shape), len(shape) - 1)
    part = shape[:axis % len(shape)] + shape[axis % len(shape) + 1:]
    out_axis = g.int(0 if g.version < 11 else -len(shape), len(shape) - 1)
    g.attrs |= {"num_scan_inputs": 1, "body": helper.make_graph(
        [helper.make_node("Add", ["s", "e"], ["t"]), helper.make_node("Identity", ["t"], ["o"])],
        "body", [info("s", dtype), info("e", dtype)], [info("t", dtype), info("o", dtype)])}
    if axis or g.chance():
        g.attrs["scan_input_axes"] = [axis]
    if g.chance():
        g.attrs["scan_input_directions"] = [g.int(0, 1)]
    if g.chance():
        g.attrs["scan_output_axes"] = [out_axis]
    if g.chance():
        g.attrs["scan_output_directions"] = [g.int(0, 1)]
    sums = dtype.kind == "f" and "finite sums"
    first = g.input(g.values(dtype, part, special=sums))
    x = g.input(g.values(dtype, shape, special=sums))
    g.types["V"] = f"tensor({kind})"
    g.outputs = 2
    g.peers = ("onnxruntime",)
    # One addition after the other on both sides: the same roundings.
    g.tolerance = Tolerance(ulps=1, scale=0 * bounds.most(first) * bounds.most(x))


@op("SequenceMap")
def sequence_map(g):
    dtype = np.dtype(np.float32)
    kind = "seq(tensor(float))"
    items = [g.values(dtype, g.shape(high=2, empty=False)) for _ in range(g.int(1, 4))]
    g.input(items, type=kind)
    extra = g.chance()
    from .case import Input
    if extra:
        g.inputs.append(Input("x1", g.values(dtype, (), special=False), "tensor(float)"))
    g.attrs["body"] = helper.make_graph(
        [helper.make_node("Add" if extra else "Neg", ["a", "b"] if extra else ["a"], ["c"])],
        "body", [info("a", dtype)] + ([info("b", dtype)] if extra else []), [info("c", dtype)])
    g.types["S"] = kind
    g.outputs = 1


# ---- texts

@op("StringConcat")
def string_concat(g):
    full = g.shape()
    a, b = (full, g.narrower(full))
    g.input(g.text(a))
    g.input(g.text(b))


@op("StringSplit")
def string_split(g):
    texts = ["", "a b", "  a  b ", "a,b,,c", "x", ",", "a, b", "  "]
    g.attr("delimiter", [",", " ", "", ", ", "ab"])
    g.attr("maxsplit", [0, 1, 2, 5], 0.4)
    if g.attrs.get("maxsplit") == 0:
        del g.attrs["maxsplit"]
    x = g.text(g.shape(high=2), texts)
    if not x.size:
        raise Redraw  # how wide an output of no texts is, nothing says
    g.input(x)
    g.outputs = 2


@op("RegexFullMatch")
def regex(g):
    g.attr("pattern", ["a+b*", "[A-Z][a-z]+", ".*", "", "(a|b)+", r"\d+", r"\w+", "x.y", "a{1,3}",
                       "[^a]*", r"\S+\s\S+", "(?:ab|cd)*", "é.*", ".{3}"], 1)
    g.input(g.text(g.shape(), ["", "a", "aab", "Hello", "a b", "12", "x y", "aaa", "été", "cdab",
                               "naï"]))


@op("StringNormalizer")
def string_normalizer(g):
    g.attr("case_change_action", ["NONE", "LOWER", "UPPER"], 1)
    g.attr("is_case_sensitive", [0, 1])
    if g.chance(0.6):
        g.attrs["stopwords"] = g.pick([["a"], ["Zebra", "ab"], ["x y", ""]])
    many = g.int(1, 6)
    g.input(g.text((1, many) if g.chance() else (many,), [*TEXTS, "AB", "ÉTÉ"]), view=False)
    # Neither peer has both: onnxruntime changes case with a locale of the host, the reference
    # evaluator forgets the stop words.
    g.peers, g.formula = ("formula",), lambda x: [normalized(x, g.attrs)]


def normalized(x, attrs):
    exact = attrs.get("is_case_sensitive", 0)
    fold = str if exact else str.lower
    stop = {fold(w) for w in attrs.get("stopwords", [])}
    change = {"LOWER": str.lower, "UPPER": str.upper}.get(attrs.get("case_change_action"), str)
    kept = np.array([change(w) for w in x.reshape(-1) if fold(w) not in stop] or [""], object)
    return kept.reshape((1, -1) if x.ndim == 2 else -1)


@op("TfIdfVectorizer")
def tfidf(g):
    dtype = g.dtype("T", only=["int32", "int64", "string"])
    low = g.int(1, 2)
    high = g.int(low, 2)
    words = [1, 2, 3, 4]
    singles = [int(w) for w in g.rng.permutation(words)[:3]]
    pairs = [(g.pick(words), g.pick(words)) for _ in range(3)]
    pairs = list(dict.fromkeys(pairs))
    pool = singles + [w for p in pairs for w in p]
    many = len(singles) + len(pairs)
    g.attrs |= {"mode": g.pick(["TF", "IDF", "TFIDF"]), "min_gram_length": low,
                "max_gram_length": high, "max_skip_count": g.int(0, 3),
                "ngram_counts": [0, len(singles)],
                "ngram_indexes": [int(k) for k in g.rng.permutation(many)]}
    if g.chance() or g.attrs["mode"] != "TF":
        g.attrs["weights"] = [0.5 + k for k in range(many)]
    shape = g.pick([(g.int(1, 9),), (g.int(1, 3), g.int(1, 9))])
    x = g.rng.integers(1, 6, shape)
    if dtype == object:
        g.attrs["pool_strings"] = [f"w{w}" for w in pool]
        x = np.array([f"w{w}" for w in x.reshape(-1)], object).reshape(shape)
    else:
        g.attrs["pool_int64s"] = pool
        x = x.astype(dtype)
    g.input(x)


# ---- random draws: type and shape as the peer has them, values by their range

def drawn(g, check):
    g.shapes_only = True
    g.outputs = 1
    g.formula = lambda x=None, *_: [np.zeros(g.attrs.get("shape", getattr(x, "shape", ())))]
    return check


def finite(got):
    x = np.asarray(got[0]).astype(np.float64)
    return None if np.isfinite(x).all() else "not finite"


@op("RandomNormal", "RandomUniform")
def random_shape(g):
    g.attrs["shape"] = [g.dim() for _ in range(g.int(1, 3))]
    out = g.attr("dtype", [1, 11])
    if np.prod(g.attrs["shape"]) > 4000:
        raise Redraw
    g.types["T"] = f"tensor({TensorProto.DataType.Name(out).lower()})"
    return random_range(g)


def random_range(g):
    if g.name.startswith("RandomUniform"):
        low = g.attr("low", [-2.0, 0.25])
        g.attr("high", [3.0, 1.0])
        return drawn(g, lambda got: finite(got) if not np.asarray(got[0]).size or
                     (low <= np.asarray(got[0]).astype(float).min() and
                      np.asarray(got[0]).astype(float).max() <= g.attrs.get("high", 1.0))
                     else "out of range")
    g.attr("mean", [0.0, 5.0])
    g.attr("scale", [1.0, 0.1])
    return drawn(g, finite)


@op("RandomNormalLike", "RandomUniformLike")
def random_like(g):
    dtype = g.dtype("T1", only=["float", "double", "int64", "float16"])
    out = g.attr("dtype", [1, 11], 1 if dtype.kind == "i" else 0.5) or \
        helper.np_dtype_to_tensor_dtype(dtype)
    g.types["T2"] = f"tensor({TensorProto.DataType.Name(out).lower()})"
    g.input(g.values(dtype, g.shape()))
    g.promote = False
    return random_range(g)


@op("Multinomial")
def multinomial(g):
    dtype = g.dtype("T1", only=["float"])
    many, classes = g.attr("sample_size", [1, 3, 8]), g.int(1, 6)
    out = g.attr("dtype", [6, 7])
    g.types["T2"] = f"tensor({TensorProto.DataType.Name(out).lower()})"
    g.input(g.real(dtype, (g.int(1, 4), classes), special=False))
    g.formula = None
    return several(g, many, lambda got: None if not got[0].size or
                 (got[0].min() >= 0 and got[0].max() < classes) else "out of range")


def several(g, many, check):
    drawn(g, check)
    g.formula = lambda x: [np.zeros((len(x), many))]
    return check


@op("Bernoulli")
def bernoulli(g):
    dtype = g.dtype("T1", only=["float", "double", "float16"])
    out = g.attr("dtype", [1, 11, 7, 9]) or helper.np_dtype_to_tensor_dtype(dtype)
    g.types["T2"] = f"tensor({TensorProto.DataType.Name(out).lower()})"
    g.promote = False
    p = g.input(g.rng.choice([0.0, 1.0, 0.5], g.shape()).astype(dtype))
    return drawn(g, lambda got: None if np.all((got[0].astype(float) == p.astype(float)) |
                                               (p.astype(float) == 0.5)) else "against certainty")


# ---- training steps

@op("Adagrad", "Adam", "Momentum", domain="ai.onnx.preview.training")
def training(g):
    from .case import Input
    dtype = g.dtype("T3" if g.name != "Momentum" else "T3")
    name = type_name(dtype)
    g.types |= {"T1": f"tensor({name})", "T2": "tensor(int64)", "T3": f"tensor({name})"}
    many = g.int(1, 2)
    shapes = [g.shape(high=2, empty=False) for _ in range(many)]
    for key, options in (("alpha", [0.9, 0.95]), ("beta", [0.9, 0.1]), ("epsilon", [1e-2, 1e-3]),
                         ("norm_coefficient", [0.001, 0.1]), ("decay_factor", [0.0, 0.1])):
        g.attr(key, options, 1)
    g.attr("norm_coefficient_post", [0.0, 0.1])
    g.attr("mode", ["standard", "nesterov"], 1)
    kinds = {"Adagrad": 3, "Adam": 4, "Momentum": 3}[g.name]
    values = [np.array(g.pick([0.1, 0.5]), dtype), np.array(g.int(0, 3), np.int64)]
    for k in range(kinds):
        values += [g.real(dtype, s, low=0.1 if k > 1 else -1, high=1) for s in shapes]
    for k, v in enumerate(values):
        g.inputs.append(Input(f"x{k}", v, f"tensor({type_name(v.dtype)})"))
    g.outputs = many * (kinds - 1)
    g.formula = lambda *given: trained(g.name, g.attrs, many, *given)
    g.peers = ("formula",)  # the reference evaluator's coefficients are float
    # A dozen operations on values of at most 2, and a quotient by at least a root of 0.01.
    g.tolerance = Tolerance(ulps=16, scale=16)


def trained(name, attrs, many, rate, steps, *rest):
    """One step of each optimizer, as its operator's pseudo code has it."""
    a = {k: float(np.float32(v)) if isinstance(v, float) else v for k, v in attrs.items()}
    rate, steps = float(rate), int(steps)
    columns = [[formulas.double(v) for v in rest[k * many:(k + 1) * many]]
               for k in range(len(rest) // many)]
    out = [{"Adagrad": adagrad, "Adam": adam, "Momentum": momentum}[name](a, rate, steps, *one)
            for one in zip(*columns, strict=True)]
    return [one[k] for k in range(len(out[0])) for one in out]


def adagrad(a, rate, steps, x, grad, squares):
    grad = grad + a.get("norm_coefficient", 0.0) * x
    squares = squares + grad * grad
    rate = rate / (1 + steps * a.get("decay_factor", 0.0))
    return x - rate * grad / (np.sqrt(squares) + a.get("epsilon", 0.0)), squares


def adam(a, rate, steps, x, grad, first, second):
    grad = grad + a.get("norm_coefficient", 0.0) * x
    alpha, beta = a.get("alpha", float(np.float32(0.9))), a.get("beta", float(np.float32(0.999)))
    first = alpha * first + (1 - alpha) * grad
    second = beta * second + (1 - beta) * grad * grad
    if steps > 0:
        rate = rate * np.sqrt(1 - beta ** steps) / (1 - alpha ** steps)
    x = x - rate * first / (np.sqrt(second) + a.get("epsilon", 0.0))
    return (1 - a.get("norm_coefficient_post", 0.0)) * x, first, second


def momentum(a, rate, steps, x, grad, velocity):
    grad = grad + a["norm_coefficient"] * x
    weight = a["beta"] if steps > 0 else 1.0
    velocity = a["alpha"] * velocity + weight * grad
    if a["mode"] == "nesterov":
        return x - rate * (grad + a["alpha"] * velocity), velocity
    return x - rate * velocity, velocity


assert onnx and type_proto
