"""preview.py - FlexAttention, Gradient and ImageDecoder."""
import io

import numpy as np
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from . import bounds, formulas
from .case import Input, Redraw, Tolerance, np_type, op, type_name, type_proto


# ---- FlexAttention: the reference evaluator's bodies see float, so a formula is the peer

def body(name, precision, nodes):
    info = [helper.make_tensor_value_info(n, precision, None) for n in ("in", "out")]
    return helper.make_graph(nodes, name, info[:1], info[1:])


MODIFIERS = {"Tanh": np.tanh, "Neg": np.negative, "Add": lambda x: x + x, "Identity": lambda x: x,
             "Relu": lambda x: np.maximum(x, 0)}  # slopes of at most 2


def modifier(name, precision, how):
    given = ["in", "in"] if how == "Add" else ["in"]
    return body(name, precision, [helper.make_node(how, given, ["out"])])


@op("FlexAttention", domain="ai.onnx.preview")
def flex_attention(g):
    dtype = g.dtype("T1")
    batch, kv, ratio, new, keys = g.int(1, 2), g.int(1, 2), g.pick([1, 2]), g.int(1, 4), g.int(1, 5)
    size, v_size = g.pick([2, 4]), g.pick([2, 3])
    g.default_opset = 22  # where Tanh and Relu of the bodies have every type
    wide = TensorProto.DOUBLE if dtype == np.float64 else TensorProto.FLOAT
    if g.chance(0.3):
        wide = g.attrs["softmax_precision"] = g.pick([TensorProto.FLOAT, TensorProto.DOUBLE])
    scale = g.attr("scale", [0.5, 0.25], 0.4) or 1 / np.sqrt(size)
    how = {}
    for name in ("score_mod", "prob_mod"):
        if g.chance(0.4):
            how[name] = g.pick(list(MODIFIERS))
            g.attrs[name] = modifier(name, wide, how[name])
    q, k, v = (g.input(g.values(dtype, s, special=False)) for s in
               ((batch, kv * ratio, new, size), (batch, kv, keys, size),
                (batch, kv, keys, v_size)))
    q, k, v = bounds.most(q), bounds.most(k), bounds.most(v)
    g.promote = False
    g.peers, g.formula = ("formula",), lambda *x: [flexed(scale, how, *x)]
    # Both bodies have slopes of at most 2: 2 * 2 times the bound of attention, in the precision that
    # the scores have.
    g.tolerance = Tolerance(ulps=4, scale=4 * bounds.attention(size, keys, scale, q, k, v),
                            in_float=dtype == np.float64 and wide == TensorProto.FLOAT)


def flexed(scale, how, q, k, v):
    q, k, v = (formulas.double(x) for x in (q, k, v))
    ratio = q.shape[1] // k.shape[1]
    scores = q @ np.repeat(k, ratio, 1).swapaxes(2, 3) * scale
    probs = formulas.softmax(MODIFIERS[how.get("score_mod", "Identity")](scores), -1)
    return MODIFIERS[how.get("prob_mod", "Identity")](probs) @ np.repeat(v, ratio, 1)


# ---- Gradient: beside central differences of the reference evaluator in double

SMOOTH = ["Tanh", "Sigmoid", "Softplus", "Sin", "Cos", "Exp", "Neg", "Erf", "Atan", "Mish"]
POSITIVE = ["Sqrt", "Log", "Reciprocal"]
STEP = 1e-4


class Chain:
    """Nodes of random differentiable operators from inputs x0, x1, .. down to a scalar."""

    def __init__(self, g, shapes):
        self.g, self.nodes, self.count = g, [], 0
        self.values = {f"x{k}": s for k, s in enumerate(shapes)}

    def add(self, kind, inputs, shape, **attrs):
        self.count += 1
        out = f"t{self.count}"
        self.nodes.append(helper.make_node(kind, inputs, [out], **attrs))
        self.values[out] = tuple(shape)
        return out

    def grow(self, x):
        g, shape = self.g, self.values[x]
        how = g.pick(["smooth", "smooth", "positive", "two", "two", "transpose", "sum", "softmax",
                      "product", "concat"])
        if how == "smooth":
            return self.add(g.pick(SMOOTH), [x], shape)
        if how == "positive":  # of 1.5 + sin x: between a half and 2.5
            return self.add(g.pick(POSITIVE), [self.add("Add", [self.add("Sin", [x], shape), "c"],
                                                        shape)], shape)
        if how == "two":
            y = g.pick([n for n, s in self.values.items() if s in (shape, ())] + [x])
            return self.add(g.pick(["Add", "Sub", "Mul"]), [x, y], shape)
        if how == "transpose":
            return self.add("Transpose", [x], shape[::-1])
        if how == "sum" and shape:
            return self.add(g.pick(["ReduceMean", "ReduceSumSquare", "ReduceLogSumExp"]),
                            [x], (1,) * len(shape), keepdims=1)
        if how == "softmax" and shape:
            return self.add(g.pick(["Softmax", "LogSoftmax"]), [x], shape, axis=-1)
        if how == "product" and len(shape) == 2:
            turned = self.add("Transpose", [x], shape[::-1])
            return self.add("MatMul", [x, turned], (shape[0], shape[0]))
        if how == "concat" and shape:
            return self.add("Concat", [x, x], (2 * shape[0], *shape[1:]), axis=0)
        return self.add("Tanh", [x], shape)


@op("Gradient", domain="ai.onnx.preview.training")
def gradient(g):
    dtype = np.dtype(g.pick([np.float32, np.float32, np.float64]))
    g.types |= {"T1": f"tensor({type_name(dtype)})", "T2": f"tensor({type_name(dtype)})"}
    g.default_opset = g.pick([18, 20])
    many = g.int(1, 3)
    shape = tuple(g.pick([1, 2, 3]) for _ in range(g.int(0, 2)))
    shapes = [shape if k == 0 or g.chance(0.6) else () for k in range(many)]
    chain = Chain(g, shapes)
    at = "x0"
    for _ in range(g.int(1, 5)):
        at = chain.grow(at)
        if np.prod(chain.values[at]) > 60:
            raise Redraw
    if many > 1:  # what else is differentiated takes part, too
        for k in range(1, many):
            at = chain.add("Mul", [at, chain.add("ReduceSumSquare", [f"x{k}"], (), keepdims=0)],
                           chain.values[at])
    total = chain.add("ReduceSumSquare", [at], (), keepdims=0)
    wanted = g.int(1, many)
    g.attrs |= {"xs": [f"x{k}" for k in range(wanted)], "y": total}
    if wanted < many:
        g.attrs["zs"] = [f"x{k}" for k in range(wanted, many)]
    for k, s in enumerate(shapes):
        x = np.asarray(g.rng.uniform(-1.2, 1.2, s)).astype(dtype)
        g.inputs.append(Input(f"x{k}", x, f"tensor({type_name(dtype)})", view=False,
                              constant=False))
    constant = np.array(1.5, dtype)
    g.before = [helper.make_node("Constant", [], ["c"], value=helper.make_tensor(
        "c", helper.np_dtype_to_tensor_dtype(dtype), [], [1.5]))] + chain.nodes
    g.outputs = wanted
    g.peers = ("formula",)
    g.formula = lambda *x: differences(g, chain, total, wanted, x)
    del constant
    try:
        size, steepest = slopes(g, chain, total, wanted, shapes)
    except (ValueError, FloatingPointError):
        raise Redraw from None
    if not np.isfinite(size) or size > 1e4:
        raise Redraw
    # Richardson's difference of step h is off by O(h^4) of the fifth derivative and 1e-16 / h of the
    # value; the gradient in float by some eps of the largest product on the way, for each node.
    eps = float(np.finfo(np.float32).eps) if dtype == np.float32 else 0.0
    g.tolerance = Tolerance(ulps=0, absolute=eps * 64 * len(chain.nodes) * max(steepest, size, 1) +
                            1e-7 * max(size, steepest, 1))


class Erf(OpRun):
    """The reference evaluator's is float."""
    op_domain = ""

    def _run(self, x):
        return (formulas.erf(x),)


def forward(g, chain, total):
    graph = helper.make_graph(
        [helper.make_node("Constant", [], ["c"], value=helper.make_tensor(
            "c", TensorProto.DOUBLE, [], [1.5]))] + chain.nodes, "forward",
        [helper.make_tensor_value_info(i.name, TensorProto.DOUBLE, None) for i in g.inputs],
        [helper.make_tensor_value_info(total, TensorProto.DOUBLE, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", g.default_opset)],
                              ir_version=8)
    runner = ReferenceEvaluator(model, new_ops=[Erf])
    return lambda xs: float(runner.run(None, {i.name: x for i, x in
                                              zip(g.inputs, xs, strict=True)})[0])


def differences(g, chain, total, wanted, xs):
    """Central differences of steps h and 2h, combined so that the h^2 term goes (Richardson)."""
    value, xs = forward(g, chain, total), [np.array(x, np.float64) for x in xs]
    out = []
    for k in range(wanted):
        slope = np.zeros_like(xs[k])
        for at in np.ndindex(xs[k].shape):
            kept = xs[k][at]
            parts = []
            for h in (STEP, 2 * STEP):
                ends = []
                for side in (h, -h):
                    xs[k][at] = kept + side
                    ends.append(value(xs))
                parts.append((ends[0] - ends[1]) / (2 * h))
            xs[k][at] = kept
            slope[at] = (4 * parts[0] - parts[1]) / 3
        out.append(slope)
    return out


def slopes(g, chain, total, wanted, shapes):
    """(|y|, the largest slope): what the bound of rounding is measured by."""
    xs = [i.value.astype(np.float64) for i in g.inputs]
    del shapes
    return abs(forward(g, chain, total)(xs)), max(
        (float(np.abs(s).max(initial=0)) for s in differences(g, chain, total, wanted, xs)),
        default=0.0)


# ---- ImageDecoder: files that pillow writes, against what pillow reads

FORMATS = {"png": {}, "bmp": {}, "ppm": {}, "tiff": {}, "jpeg": {}, "webp": {"lossless": True},
           "jpeg2000": {}}


def picture(g):
    """A picture of few smooth waves, or of noise."""
    h, w = (g.int(1, 80), g.int(1, 80)) if g.chance(0.2) else (g.int(1, 20), g.int(1, 20))
    if g.chance(0.4):
        return g.rng.integers(0, 256, (h, w, 3)).astype(np.uint8)
    y, x = np.mgrid[0:h, 0:w]
    waves = [127 + 120 * np.sin(g.rng.uniform(0, 0.6) * x + g.rng.uniform(0, 0.6) * y +
                                g.rng.uniform(0, 6)) for _ in range(3)]
    return np.stack(waves, -1).astype(np.uint8)


@op("ImageDecoder")
def image_decoder(g):
    import PIL.Image
    kind = g.pick(["png", "png", "jpeg", "jpeg", "bmp", "tiff", "webp", "ppm"])
    grey = g.chance(0.2) and kind != "webp"
    image = PIL.Image.fromarray(picture(g)).convert("L" if grey else "RGB")
    more = {}
    if kind == "jpeg":
        more = {"quality": g.pick([50, 75, 95]), "progressive": g.chance(0.3)}
        if not grey:
            more["subsampling"] = g.pick([0, 1, 2])
    elif kind == "webp":
        more = {"lossless": g.chance()}
    elif kind == "tiff":
        more = {"compression": g.pick([None, "tiff_lzw", "tiff_deflate"])}
    elif kind == "png" and g.chance(0.2) and not grey:
        image = image.quantize(16)
    file = io.BytesIO()
    image.save(file, kind, **more)
    g.attrs["pixel_format"] = g.pick(["RGB", "BGR", "Grayscale"])
    g.input(np.frombuffer(file.getvalue(), np.uint8).copy(), view=False)
    if image.mode != "RGB" and g.attrs["pixel_format"] != "Grayscale":
        # A grey or indexed file as RGB: the reference evaluator hands out what the file holds.
        decoded = np.asarray(PIL.Image.open(io.BytesIO(file.getvalue())).convert("RGB"))
        swapped = decoded[:, :, ::-1] if g.attrs["pixel_format"] == "BGR" else decoded
        g.formula = lambda _: [swapped]
        g.peers = ("formula",)
    else:
        g.peers = ("reference",)
    g.outputs = 1
    # The same libraries may be built with other inverse transforms: JPEG and WebP fix them to +-1.
    g.tolerance = Tolerance(steps=2 if kind in ("jpeg", "webp") else 0)


assert np_type and type_proto
