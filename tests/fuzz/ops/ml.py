"""ml.py - the operators of ai.onnx.ml."""
import numpy as np
from onnx import numpy_helper

from . import bounds, formulas
from .case import Input, Redraw, Tolerance, np_type, op

ML = "ai.onnx.ml"
WORDS = ["a", "b", "c", "Zebra", "", "über"]
POST = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"]


def features(g, rows=None, width=None, special=False):
    dtype = g.dtype(g.schema.inputs[0].type_str)
    rows, width = rows or g.int(1, 4), width or g.int(1, 5)
    return g.input(g.values(dtype, (rows, width), special=special))


def floats(g, *shape):
    return [float(v) for v in g.rng.standard_normal(int(np.prod(shape))).astype(np.float32)]


@op("Binarizer", domain=ML)
def binarizer(g):
    g.attr("threshold", [0.0, 0.5, 2.0])
    dtype = g.dtype("T")
    g.input(g.values(dtype, g.shape(low=1), special="finite"))


@op("ArrayFeatureExtractor", domain=ML)
def array_feature_extractor(g):
    x = features(g)
    g.input(g.rng.integers(0, x.shape[1], (1, g.int(1, 4))).astype(np.int64))


@op("Scaler", domain=ML)
def scaler(g):
    x = features(g)
    many = g.pick([1, x.shape[1]])
    g.attrs |= {"offset": floats(g, many), "scale": floats(g, many)}
    # A difference and a product.
    g.tolerance = Tolerance(ulps=1, scale=(bounds.most(x) + bounds.most(g.attrs["offset"])) *
                            bounds.most(g.attrs["scale"]))


@op("Normalizer", domain=ML)
def normalizer(g):
    x = features(g)
    g.attr("norm", ["MAX", "L1", "L2"])
    if x.dtype.kind == "f":  # whose squares float doesn't hold
        x = g.inputs[0].value = np.where(np.abs(x) < 1e-4, 0, x).astype(x.dtype)
    if np.any(np.all(x == 0, axis=1)):
        raise Redraw
    # L1 sums magnitudes, or signs that cancel: the sum of at most 5 terms over its result.
    total = np.abs(formulas.double(x).sum(1)).min() if x.dtype != object else 1
    g.tolerance = Tolerance(ulps=8 + 8 * bounds.most(x) * x.shape[1] / max(float(total), 1e-3))


@op("Imputer", domain=ML)
def imputer(g):
    dtype = g.dtype("T")
    shape = (g.int(1, 4), g.int(1, 4))
    many = g.pick([1, shape[1]])
    if dtype.kind == "f":
        x = g.rng.choice([1.0, 2.5, np.nan, -1.0], shape).astype(dtype)
        g.attrs |= {"imputed_value_floats": floats(g, many),
                    "replaced_value_float": g.pick([float("nan"), -1.0])}
    else:
        x = g.rng.integers(-1, 3, shape).astype(dtype)
        g.attrs |= {"imputed_value_int64s": [g.int(-9, 9) for _ in range(many)],
                    "replaced_value_int64": g.int(-1, 1)}
    g.input(x)


@op("FeatureVectorizer", domain=ML)
def feature_vectorizer(g):
    dtype = g.dtype("T1")
    rows, sizes = g.int(1, 4), [g.int(1, 3) for _ in range(g.int(1, 3))]
    g.attrs["inputdimensions"] = sizes
    for s in sizes:
        g.input(g.values(dtype, (rows, s), special=False))


@op("OneHotEncoder", domain=ML)
def one_hot_encoder(g):
    dtype = g.dtype("T")
    g.attr("zeros", [1], 1)
    shape = g.shape(high=2, empty=False)
    if dtype == object:
        g.attrs["cats_strings"] = ["a", "b", "Zebra"]
        g.input(g.text(shape, WORDS))
    else:
        g.attrs["cats_int64s"] = [int(k) for k in g.rng.permutation(6)[:4]]
        g.input(g.rng.integers(0, 7, shape).astype(dtype))
    cats = np.array(g.attrs.get("cats_strings", g.attrs.get("cats_int64s")), object)
    g.formula = lambda x: [x[..., None].astype(object if dtype == object else np.int64) == cats]


@op("CategoryMapper", domain=ML)
def category_mapper(g):
    dtype = g.dtype("T1")
    g.types["T2"] = "tensor(int64)" if dtype == object else "tensor(string)"
    g.attrs |= {"cats_strings": ["a", "b", "Zebra"], "cats_int64s": [4, 2, 9]}
    g.attr("default_int64", [-1, 7])
    g.attr("default_string", ["_Unused", "?"])
    shape = g.shape(empty=False)
    g.input(g.text(shape, WORDS) if dtype == object else
            g.rng.integers(0, 10, shape).astype(np.int64))


@op("LabelEncoder", domain=ML)
def label_encoder(g):
    a, b = g.dtype("T1"), g.dtype("T2")
    shape = g.shape(empty=False)
    if g.version == 1:
        if (a == object) == (b == object):
            raise Redraw
        g.attrs["classes_strings"] = ["a", "b", "Zebra"]
        g.attr("default_int64", [-1, 7])
        g.attr("default_string", ["_Unused", "?"])
        g.input(g.text(shape, WORDS) if a == object else
                g.rng.integers(-1, 5, shape).astype(np.int64))
        return
    numbers = [3, 1, 7, 0]
    texts = ["a", "b", "Zebra", "über"]

    def table(dtype, side, values):
        name = {"object": "strings", "int64": "int64s", "float32": "floats"}.get(dtype.name)
        if name is None or (g.version >= 4 and dtype != object and g.chance(0.3)):
            g.attrs[f"{side}_tensor"] = numpy_helper.from_array(np.array(values).astype(dtype))
            return True
        g.attrs[f"{side}_{name}"] = [float(v) if name == "floats" else v for v in values]
        return False
    table(a, "keys", texts if a == object else numbers)
    as_tensor = table(b, "values", texts[::-1] if b == object else numbers[::-1])
    if as_tensor:
        g.attrs["default_tensor"] = numpy_helper.from_array(np.array([5]).astype(b))
    elif b != object and g.chance():
        g.attr("default_int64" if b == np.int64 else "default_float",
               [4 if b == np.int64 else 4.0], 1)
    g.input(g.text(shape, WORDS) if a == object else g.rng.integers(-1, 9, shape).astype(a))


@op("DictVectorizer", domain=ML)
def dict_vectorizer(g):
    kind = g.pick(sorted(g.allowed("T1")))
    key, value = kind[4:-1].replace(" ", "").split(",")
    if value == "string":
        raise Redraw  # neither peer has it
    vocabulary = ["a", "b", "c", "d"] if key == "string" else [1, 2, 3, 4]
    g.attrs["string_vocabulary" if key == "string" else "int64_vocabulary"] = vocabulary
    chosen = [v for v in vocabulary if g.chance()] or vocabulary[:1]
    given = {k: np_type(value).type(g.int(1, 9)).item() for k in chosen}
    g.types |= {"T1": kind, "T2": f"tensor({value})"}
    g.peer_after = lambda r: [r[0].reshape(1, -1)]  # the reference evaluator has one dimension
    g.inputs.append(Input("x0", Map(given, np_type(value)), kind, view=False, constant=False))
    g.promote = False


@op("CastMap", domain=ML)
def cast_map(g):
    kind = g.pick(["map(int64, string)", "map(int64, float)"])
    target = g.pick(["TO_FLOAT", "TO_INT64", "TO_STRING"])
    g.attrs |= {"cast_to": target, "map_form": g.pick(["DENSE", "SPARSE"])}
    keys = [int(k) for k in np.sort(g.rng.permutation(6)[:3])]
    g.attrs["max_map"] = max(keys) + 1 + g.int(0, 2)
    texts = kind.endswith("string)")
    if not texts and target == "TO_STRING":
        raise Redraw  # how many digits a float prints is not specified
    given = {k: str(g.int(1, 9)) if texts else float(g.int(1, 9)) for k in keys}
    g.types |= {"T1": kind, "T2": {"TO_FLOAT": "tensor(float)", "TO_INT64": "tensor(int64)",
                                   "TO_STRING": "tensor(string)"}[target]}
    g.inputs.append(Input("x0", Map(given, object if texts else np.float32), kind, view=False,
                          constant=False))
    g.promote = False
    g.formula = lambda m: [unrolled(m, dict(g.attrs))]


def unrolled(given, attrs):
    """CastMap: the values in the order of the keys, or each at its key in a row of max_map."""
    kind = {"TO_FLOAT": np.float32, "TO_INT64": np.int64, "TO_STRING": object}[attrs["cast_to"]]
    dense = attrs["map_form"] == "DENSE"
    row = np.full(len(given) if dense else attrs["max_map"], "" if kind is object else 0, kind)
    for k, key in enumerate(sorted(given)):
        row[k if dense else key] = kind(float(given[key])) if kind is not object else given[key]
    return row.reshape(1, -1)


class Map(dict):
    """A map whose values have an element type."""

    def __init__(self, values, dtype):
        super().__init__(values)
        self.dtype = np.dtype(dtype)


@op("ZipMap", domain=ML)
def zip_map(g):
    width = g.int(1, 4)
    if g.chance():
        g.attrs["classlabels_int64s"] = [int(k) for k in g.rng.permutation(9)[:width]]
        g.types["T"] = "seq(map(int64, float))"
    else:
        g.attrs["classlabels_strings"] = ["a", "b", "c", "d"][:width]
        g.types["T"] = "seq(map(string, float))"
    g.input(g.values(np.dtype(np.float32), (g.int(1, 3), width), special=False))


@op("LinearRegressor", domain=ML)
def linear_regressor(g):
    g.dtype("T")
    x = features(g)
    targets = g.int(1, 3)
    g.attrs |= {"targets": targets, "coefficients": floats(g, targets, x.shape[1])}
    if g.chance():
        g.attrs["intercepts"] = floats(g, targets)
    if targets > 1:  # SOFTMAX_ZERO of zeros only: 0 / 0
        g.attr("post_transform", POST if g.regime != "whole" else POST[:3])
        if g.attrs.get("post_transform") == "SOFTMAX_ZERO" and nearly_zero(g, x, targets):
            raise Redraw
    scores(g, bounds.dot(x.shape[1] + 1, x, g.attrs["coefficients"],
                         extra=bounds.most(g.attrs.get("intercepts"))))
    only_floats(g, x)


def nearly_zero(g, x, targets):
    """Whether all scores of a row cancel: rounding makes their quotients."""
    made = formulas.double(x) @ np.reshape(g.attrs["coefficients"], (targets, -1)).T
    made += np.reshape(g.attrs.get("intercepts", [0.0] * targets), targets)
    return (np.abs(made).max(1, initial=0) < 1e-5).any()


def scores(g, off):
    """Scores off by `off`, and by twice that behind a softmax or logistic, relatively: a post
    transform's exp turns absolute errors into relative ones, results are at most 1. The work is in
    float whatever the input is."""
    g.tolerance = Tolerance(ulps=2 * bounds.FUNCTION, scale=2 * off + bounds.FUNCTION,
                            in_float=True)


def only_floats(g, x):
    """onnxruntime runs these on float; other types come to it as the floats they are."""
    if x.dtype != np.float32 and x.dtype != object:
        g.peer_form = {"inputs": [Input("x0", x.astype(np.float32), "tensor(float)")]}


def labels(g, count):
    if g.chance():
        g.types["T2"] = "tensor(int64)"
        return "ints", [int(k) for k in g.rng.permutation(9)[:count]]
    g.types["T2"] = "tensor(string)"
    return "strings", ["a", "b", "Zebra", "über"][:count]


@op("LinearClassifier", domain=ML)
def linear_classifier(g):
    g.dtype("T1")
    x = features(g)
    classes = g.int(2, 4)
    kind, names = labels(g, classes)
    g.attrs |= {f"classlabels_{kind}": names, "intercepts": floats(g, classes),
                "coefficients": floats(g, classes, x.shape[1])}
    g.attr("post_transform", POST if g.regime != "whole" else POST[:3])
    g.attr("multi_class", [0, 1])
    scores(g, bounds.dot(x.shape[1] + 1, x, g.attrs["coefficients"],
                         extra=bounds.most(g.attrs["intercepts"])))
    g.outputs = 2
    only_floats(g, x)


def kernel_bound(g, x, supports):
    """The error of a sum of kernels of x with the supports, times their coefficients. An inner
    product (or a squared distance) s is off by d; a power p of gamma s + coef0 by p |.|^(p-1) gamma d
    (and p ULP), exp(-gamma s) and tanh by gamma d."""
    width, top = x.shape[1], bounds.most(x) + bounds.most(g.attrs["support_vectors"])
    gamma, coef0, power = g.attrs["kernel_params"]
    s, d = width * top * top, bounds.dot(width + 1, top, top)
    kind = g.attrs["kernel_type"]
    inner = gamma * s + coef0
    off, size = {"LINEAR": (d, s), "RBF": (gamma * d + bounds.FUNCTION, 1.0),
                 "SIGMOID": (gamma * d + inner + bounds.FUNCTION, 1.0),
                 "POLY": (power * inner ** (power - 1) * (gamma * d + 2 * inner) +
                          bounds.FUNCTION * inner ** power, inner ** power)}[kind]
    weight = bounds.most(g.attrs["coefficients"])
    return supports * weight * (off + (bounds.depth(supports) + 2) * size) + 2 * bounds.most(
        g.attrs["rho"])


def kernel(g):
    g.attrs["kernel_type"] = g.pick(["LINEAR", "POLY", "RBF", "SIGMOID"])
    g.attrs["kernel_params"] = [g.pick([0.5, 0.1]), g.pick([0.0, 1.0]), float(g.pick([2, 3]))]


@op("SVMRegressor", domain=ML)
def svm_regressor(g):
    g.dtype("T")
    x = features(g)
    many = g.int(1, 4)
    kernel(g)
    g.attrs |= {"n_supports": many, "support_vectors": floats(g, many, x.shape[1]),
                "coefficients": floats(g, many), "rho": floats(g, 1)}
    g.attr("one_class", [0, 1], 0.3)
    g.tolerance = Tolerance(ulps=2, scale=kernel_bound(g, x, many), in_float=True)
    only_floats(g, x)


@op("SVMClassifier", domain=ML)
def svm_classifier(g):
    g.dtype("T1")
    x = features(g)
    classes = g.int(2, 3)
    kind, names = labels(g, classes)
    per = [g.int(1, 3) for _ in range(classes)]
    many, pairs = sum(per), classes * (classes - 1) // 2
    kernel(g)
    g.attrs |= {f"classlabels_{kind}": names, "vectors_per_class": per, "rho": floats(g, pairs),
                "support_vectors": floats(g, many, x.shape[1]),
                "coefficients": floats(g, classes - 1, many)}
    # Both signs: without probabilities the peers guess another meaning from coefficients of one.
    g.attrs["coefficients"][:2] = [-abs(g.attrs["coefficients"][0]), 1.25]
    if g.chance(0.4):
        g.attrs |= {"prob_a": [-abs(v) for v in floats(g, pairs)], "prob_b": floats(g, pairs)}
    # Probabilities are sigmoids of a score times prob_a, coupled over the pairs of classes.
    slope = 1 + bounds.most(g.attrs.get("prob_a"))
    g.tolerance = Tolerance(ulps=bounds.FUNCTION, in_float=True, scale=classes * slope * (
        kernel_bound(g, x, many) + bounds.FUNCTION))
    g.outputs = 2
    only_floats(g, x)


# ---- trees

def grow(g, nodes, width, depth, modes):
    """Append a random subtree; its nodes are dicts, leaves have no feature."""
    at = len(nodes)
    nodes.append({})
    if depth == 0 or g.chance(0.2):
        nodes[at] = {"mode": "LEAF", "feature": 0, "value": 0.0, "true": 0, "false": 0}
        return at
    node = {"mode": g.pick(modes), "feature": g.int(0, width - 1),
            "value": float(g.pick([-1.0, 0.0, 0.5, 1.0, 2.0]))}
    node["true"] = grow(g, nodes, width, depth - 1, modes)
    node["false"] = grow(g, nodes, width, depth - 1, modes)
    nodes[at] = node
    return at


MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


def forest(g, width):
    modes = MODES if g.chance(0.4) else [g.pick(MODES)]
    trees = []
    for _ in range(g.int(1, 4)):
        nodes = []
        grow(g, nodes, width, g.int(0, 4), modes)
        trees.append(nodes)
    return trees


@op("TreeEnsembleClassifier", "TreeEnsembleRegressor", domain=ML)
def tree_ensemble(g):
    regressor = g.name.endswith("Regressor")
    g.dtype("T" if regressor else "T1")
    width = g.int(1, 4)
    x = features(g, width=width, special="finite" if g.chance() else False)
    if x.dtype.kind == "f" and g.chance(0.3):
        x = np.where(g.rng.random(x.shape) < 0.2, np.nan, x).astype(x.dtype)
        g.inputs[0].value = x
    trees = forest(g, width)
    flat = [(t, k, n) for t, tree in enumerate(trees) for k, n in enumerate(tree)]
    g.attrs |= {"nodes_treeids": [t for t, _, _ in flat], "nodes_nodeids": [k for _, k, _ in flat],
                "nodes_featureids": [n["feature"] for _, _, n in flat],
                "nodes_values": [n["value"] for _, _, n in flat],
                "nodes_modes": [n["mode"] for _, _, n in flat],
                "nodes_truenodeids": [n["true"] for _, _, n in flat],
                "nodes_falsenodeids": [n["false"] for _, _, n in flat]}
    if g.chance(0.4):
        g.attrs["nodes_missing_value_tracks_true"] = [g.int(0, 1) for _ in flat]
    leaves = [(t, k) for t, k, n in flat if n["mode"] == "LEAF"]
    many = g.int(1, 3) if regressor else g.int(2, 4)
    # A weight for each target: onnxruntime leaves out the transform and the base value of a target
    # that met no weight.
    weights = [(t, k, i, float(np.float32(g.rng.standard_normal())))
               for t, k in leaves for i in range(many)]
    prefix = "target" if regressor else "class"
    for column, name in enumerate(("treeids", "nodeids", "ids", "weights")):
        g.attrs[f"{prefix}_{name}"] = [w[column] for w in weights]
    if regressor:
        g.attrs["n_targets"] = many
        g.attr("aggregate_function", ["SUM", "AVERAGE", "MIN", "MAX"])
    else:
        kind, names = labels(g, many)
        g.attrs["classlabels_" + ("int64s" if kind == "ints" else kind)] = names
        g.outputs = 2
    g.attr("post_transform", POST if many > 1 else ["NONE", "LOGISTIC"])
    if many == 1 and g.attrs.get("post_transform", "NONE") != "NONE":
        # onnxruntime leaves a single score as it is
        g.peers = ("reference",)
    if g.chance(0.4):
        g.attrs["base_values"] = floats(g, many)
    scores(g, bounds.dot(len(trees) + 1, [w[3] for w in weights],
                         extra=bounds.most(g.attrs.get("base_values"))))
    if x.dtype.kind != "f":
        only_floats(g, x)


@op("TreeEnsemble", domain=ML)
def tree_ensemble_5(g):
    dtype = g.dtype("T", only=["float", "double"])
    width, targets = g.int(1, 4), g.int(1, 3)
    inner, leaves, roots = [], [], []

    def place(tree, k):
        """(index, is leaf) of node k in the flat arrays."""
        node = tree[k]
        if node["mode"] == "LEAF":
            leaves.append((g.int(0, targets - 1), float(np.float32(g.rng.standard_normal()))))
            return len(leaves) - 1, 1
        at = len(inner)
        inner.append(None)
        yes, no = place(tree, node["true"]), place(tree, node["false"])
        inner[at] = (node["feature"], MODES.index(node["mode"]), node["value"], *yes, *no)
        return at, 0
    for tree in forest(g, width):
        if tree[0]["mode"] == "LEAF":
            continue
        roots.append(place(tree, 0)[0])
    if not roots:
        raise Redraw
    code = np.array([0, 1, 2, 3, 4, 5], np.uint8)
    columns = list(zip(*inner, strict=True))
    g.attrs |= {"tree_roots": roots, "n_targets": targets,
                "nodes_featureids": list(columns[0]),
                "nodes_modes": numpy_helper.from_array(code[list(columns[1])]),
                "nodes_splits": numpy_helper.from_array(np.array(columns[2], dtype)),
                "nodes_truenodeids": list(columns[3]), "nodes_trueleafs": list(columns[4]),
                "nodes_falsenodeids": list(columns[5]), "nodes_falseleafs": list(columns[6]),
                "leaf_targetids": [t for t, _ in leaves],
                "leaf_weights": numpy_helper.from_array(np.array([w for _, w in leaves], dtype))}
    # onnxruntime transforms no single score, nor one that met no leaf.
    g.attr("aggregate_function", [0, 1], 0.5)
    g.input(g.values(dtype, (g.int(1, 4), width), special=False))
    g.tolerance = Tolerance(ulps=2, scale=bounds.dot(len(roots) + 1, [w for _, w in leaves]))
