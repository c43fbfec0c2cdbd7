"""image.py - pooling, resizing, sampling and regions."""
import dataclasses

import numpy as np

from . import bounds, formulas
from .case import Input, Redraw, Tolerance, op
from .linear import fits, window, window_attrs


@op("AveragePool", "MaxPool", "LpPool")
def pool(g):
    dtype = g.dtype("T")
    if g.name == "MaxPool" and dtype.kind in "iu":
        pass
    g.empty_ok = False
    rank = g.pick([1, 2, 2, 2, 3])
    kernel, strides, dilations, pads, sizes = window(g, rank)
    if not window_attrs(g, kernel, strides, dilations, pads, 1) and \
            not fits(sizes, kernel, dilations):
        raise Redraw
    if "auto_pad" not in g.attrs or g.attrs["auto_pad"] == "VALID":
        g.attr("ceil_mode", [0, 0, 1])
    g.attr("count_include_pad", [0, 1])
    if any(d > 1 and n <= p for d, n, p in zip(dilations, sizes, pads[:rank], strict=True)):
        raise Redraw  # a window may meet padding only: 0 / 0
    if "SAME" in g.attrs.get("auto_pad", "") and any(
            k < s for k, s in zip(kernel, strides, strict=True)):
        raise Redraw  # the peers pad by a negative number
    if g.name == "LpPool":
        g.attr("p", [1, 2, 3])
    shape = (g.few(1, 2), g.int(1, 3), *sizes)
    special = "finite" if g.name == "MaxPool" else g.name == "AveragePool" and "finite sums"
    x = g.input(g.values(dtype, shape, special=special))
    if g.name == "AveragePool":  # a mean: no more than the sum of the largest, over its count
        g.tolerance = Tolerance(ulps=2, scale=bounds.depth(np.prod(kernel)) * bounds.most(x))
    if g.name == "LpPool":
        # p-th powers (2 ULP each) of positive terms, their sum, and a root: relative throughout.
        g.tolerance = Tolerance(ulps=2 * bounds.FUNCTION + int(np.prod(kernel)), scale=1)
    if g.name == "MaxPool" and g.version == 1:
        g.peer_form = {"opset": 8}
    if g.name == "MaxPool":
        g.outputs = g.pick([1, 2]) if len(g.schema.outputs) > 1 else 1
        g.attr("storage_order", [0, 1])
        if g.outputs == 2 and g.regime == "whole" or (g.outputs == 2 and dtype.kind in "iu"):
            g.outputs = 1  # which of equal elements has the index is not specified
        if g.outputs == 2:
            g.inputs[0].value = distinct(g, x)
            if "SAME" in g.attrs.get("auto_pad", "") and set(dilations) != {1}:
                g.outputs = 1  # no peer has the indices: the values alone
            else:
                g.peers = ("onnxruntime",)
    if g.outputs != 2:
        pool_formula(g)
    if g.name == "AveragePool":
        if g.version == 1:  # opset 7 wrote down that padding doesn't count
            g.peer_form = {"opset": 7}


def pool_formula(g):
    attrs, p = g.attrs, g.attrs.get("p", 2)
    g.formula = {"MaxPool": lambda x: [formulas.max_pool(x, attrs)],
                 "AveragePool": lambda x: [formulas.average_pool(x, attrs)],
                 "LpPool": lambda x: [formulas.lp_pool(x, attrs, p)]}[g.name]


def distinct(g, x):
    return g.rng.permutation(x.size).reshape(x.shape).astype(x.dtype) \
        if x.size < 250 or x.dtype.itemsize > 2 else unfit()


def unfit():
    raise Redraw


@op("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(g):
    dtype = g.dtype()
    g.attr("p", [1, 2, 3])
    shape = g.shape(low=3, high=5, empty=False)
    x = g.input(g.values(dtype, shape, special={
        "GlobalMaxPool": "finite", "GlobalAveragePool": "finite sums"}.get(g.name, False)))
    count = int(np.prod(shape[2:]))
    if g.name == "GlobalAveragePool":
        g.tolerance = Tolerance(ulps=2, scale=(bounds.depth(count) + 1) * bounds.along(
            x, range(2, x.ndim)) / count)
    if g.name == "GlobalMaxPool":
        g.formula = lambda x: [x.max(tuple(range(2, x.ndim)), keepdims=True)]
    if g.name == "GlobalLpPool":
        g.tolerance = Tolerance(ulps=2 * bounds.FUNCTION + bounds.depth(count))


@op("MaxUnpool")
def max_unpool(g):
    t1 = g.dtype("T1")
    g.dtype("T2")
    rank = g.pick([1, 2, 2, 3])
    kernel = [g.int(1, 3) for _ in range(rank)]
    strides = list(kernel)
    sizes = [g.int(1, 4) for _ in range(rank)]
    out = [(s - 1) * st + k for s, st, k in zip(sizes, strides, kernel, strict=True)]
    g.attrs |= {"kernel_shape": kernel, "strides": strides}
    planes = (g.int(1, 2), g.int(1, 2))
    cells, many = int(np.prod(out)), int(np.prod(sizes))
    index = np.stack([p * cells + g.rng.permutation(cells)[:many]
                      for p in range(planes[0] * planes[1])])
    shape = planes + tuple(sizes)
    g.input(g.values(t1, shape))
    g.input(index.reshape(shape).astype(np.int64))


@op("MaxRoiPool")
def max_roi_pool(g):
    dtype = g.dtype()
    batch, h, w, rois = g.int(1, 2), g.int(3, 9), g.int(3, 9), g.int(1, 4)
    g.attrs["pooled_shape"] = [g.int(1, 3), g.int(1, 3)]
    g.attr("spatial_scale", [1.0, 0.5])
    boxes = []
    for _ in range(rois):
        x, y = g.int(0, w - 1), g.int(0, h - 1)
        boxes.append([g.int(0, batch - 1), x, y, g.int(x, w - 1), g.int(y, h - 1)])
    g.input(g.values(dtype, (batch, g.int(1, 3), h, w), special=False))
    g.input(np.array(boxes, dtype))


@op("RoiAlign")
def roi_align(g):
    dtype = g.dtype("T1")
    batch, h, w, rois = g.int(1, 2), g.int(3, 9), g.int(3, 9), g.int(1, 4)
    g.attr("coordinate_transformation_mode", ["half_pixel", "output_half_pixel"])
    mode = g.attr("mode", ["avg", "max"])
    g.attr("output_height", [1, 2, 3])
    g.attr("output_width", [1, 2, 4])
    g.attr("sampling_ratio", [0, 1, 2, 3])
    g.attr("spatial_scale", [1.0, 0.5])
    low = g.rng.uniform(-1, 5, (rois, 2))
    x = g.input(g.values(dtype, (batch, g.int(1, 3), h, w), special=False))
    g.input(np.concatenate([low, low + g.rng.uniform(0.5, 6, (rois, 2))], 1).astype(dtype))
    g.input(g.rng.integers(0, batch, rois).astype(np.int64))
    g.tolerance = Tolerance(ulps=2, scale=bounds.sampled(x, max(h, w), 36))
    if mode in ("max", b"max"):
        g.peers = ("onnxruntime",)


@op("GridSample")
def grid_sample(g):
    t1 = g.dtype("T1")
    t2 = g.dtype("T2", only=["float", "double"])
    if t1 == object or t1.kind in "iuc" or t1 == bool:
        raise Redraw  # interpolation between texts, bits or whole numbers is not specified
    old = g.version < 20
    mode = g.attr("mode", ["bilinear", "nearest", "bicubic"] if old else
                  ["linear", "nearest", "cubic"])
    g.attr("padding_mode", ["zeros", "border", "reflection"])
    g.attr("align_corners", [0, 1])
    rank = 2 if old or mode in ("cubic", b"cubic") else g.pick([2, 2, 3])
    sizes = tuple(g.int(2, 6) for _ in range(rank))
    batch = g.int(1, 2)
    g.regime = "plain"
    x = g.input(g.values(t1, (batch, g.int(1, 3), *sizes), special=False))
    g.input(g.rng.uniform(-1.4, 1.4, (batch, *[g.int(1, 5) for _ in range(rank)], rank))
            .astype(t2))
    # Cubic weights reach 2.2 in sum along each axis. A grid that is float gives float places.
    g.tolerance = Tolerance(ulps=2, scale=4 * bounds.sampled(x, max(sizes), 16),
                            in_float=t1 == np.float64)
    if mode in ("bicubic", "cubic"):
        g.peers = ("onnxruntime",)  # the reference evaluator takes the border of another row


@op("AffineGrid")
def affine_grid(g):
    dtype = g.dtype("T1")
    rank = g.pick([2, 3])
    batch = g.int(1, 2)
    g.attr("align_corners", [0, 1])
    theta = g.input(g.values(dtype, (batch, rank, rank + 1), special=False))
    g.input(np.array([batch, g.int(1, 3), *[g.int(2, 5) for _ in range(rank)]], np.int64),
            view=False)
    # Coordinates in [-1, 1], off by an eps or two, and rank + 1 products.
    g.tolerance = Tolerance(ulps=2, scale=3 * bounds.dot(rank + 1, theta, 1.0))


@op("Upsample")
def upsample(g):
    dtype = g.dtype()
    mode = g.attr("mode", ["nearest", "bilinear" if g.version == 1 else "linear"])
    shape = (g.int(1, 2), g.int(1, 3), g.int(1, 5), g.int(1, 5))
    scales = [1.0, 1.0, g.pick([1.0, 2.0, 3.0]), g.pick([1.0, 2.0, 1.5])]
    if dtype in (object, bool) or dtype.kind == "c" or (dtype.kind in "iu" and
                                                         str(mode).find("linear") >= 0):
        raise Redraw
    x = g.input(g.values(dtype, shape, special=False))
    if g.has("width_scale"):
        g.attrs |= {"height_scale": scales[2], "width_scale": scales[3]}
    elif g.has("scales"):
        g.attrs["scales"] = scales
    if g.version < 9:  # opset 9 made the scales an input; mode "bilinear" was called so once
        later = "linear" if "linear" in str(mode) else "nearest"
        g.peer_form = {"opset": 9, "attrs": {"mode": later},
                       "inputs": [*g.inputs, Input("x1", np.array(scales, np.float32),
                                                   "tensor(float)")]}
    else:
        g.input(np.array(scales, np.float32), view=False)
    g.tolerance = Tolerance(ulps=2, scale=bounds.sampled(x, max(shape[2:]), 4))


def axes_in_order(g, axes, sizes):
    """The same case with its axes as 2, 3: onnxruntime scales the sizes of a policy in the order of
    the dimensions. A single axis keeps its aspect with itself: any policy is "stretch"."""
    others = {k: v for k, v in g.attrs.items() if k not in ("axes", "keep_aspect_ratio_policy")}
    if len(axes) == 1:
        g.peer_form = {"attrs": others | {"axes": axes}}
        return
    sizes = np.array([s for _, s in sorted(zip([a % 4 for a in axes], sizes, strict=True))],
                     np.int64)
    policy = g.attrs["keep_aspect_ratio_policy"]
    g.peer_form = {"attrs": others | {"axes": [2, 3], "keep_aspect_ratio_policy": policy},
                   "inputs": [*g.inputs[:-1], dataclasses.replace(g.inputs[-1], value=sizes)]}


@op("Resize")
def resize(g):
    dtype = g.dtype(g.schema.inputs[0].type_str)
    if dtype in (object, bool) or dtype.kind == "c":
        raise Redraw
    mode = g.attr("mode", ["nearest", "linear", "cubic"]) if g.version >= 11 else \
        g.attr("mode", ["nearest", "linear"])
    mode = mode.decode() if isinstance(mode, bytes) else mode
    shape = (g.int(1, 2), g.int(1, 3), g.int(1, 7), g.int(1, 7))
    if mode != "nearest" and dtype.kind in "iu":
        raise Redraw  # how an interpolated value becomes whole is not specified
    modes = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]
    if g.version >= 19:
        modes.append("half_pixel_symmetric")
    g.attr("coordinate_transformation_mode", modes)
    if mode == "nearest":
        g.attr("nearest_mode", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    if mode == "cubic":
        g.attr("cubic_coeff_a", [-0.75, -0.5])
        g.attr("exclude_outside", [0, 1], 0.4)
    if mode != "nearest" and g.version >= 18:
        g.attr("antialias", [0, 1], 0.4)
    out = [g.int(1, 12), g.int(1, 12)]
    if "nearest_mode" in g.attrs or mode == "nearest":
        out = [d * g.int(1, 3) if g.chance() else max(d // 2, 1) for d in shape[2:]]
    x = g.input(g.values(dtype, shape, special=False))
    if g.version == 10:
        scales = [1.0, 1.0, g.pick([1.0, 2.0, 3.0]), g.pick([1.0, 2.0, 0.5])]
        g.input(np.array(scales, np.float32), view=False)
    else:
        axes = None
        if g.version >= 18 and g.chance(0.4):
            axes = g.pick([[2, 3], [3, 2], [-1, -2], [3], [-2]])
            g.attrs["axes"] = axes
        sizes = [*shape[:2], *out] if axes is None else \
            [out[a % 4 - 2] for a in axes]
        dims = shape if axes is None else [shape[a] for a in axes]
        g.input(np.zeros(0, np.float32) if g.version == 11 else None, view=False)
        if g.chance():
            scales = np.array([s / d for s, d in zip(sizes, dims, strict=True)], np.float32)
            if any(int(np.floor(np.float32(d) * s)) != z
                   for d, s, z in zip(dims, scales, sizes, strict=True)):
                raise Redraw
            g.input(scales, view=False)
        else:
            g.input(np.zeros(0, np.float32) if g.version == 11 else None, view=False)
            g.input(np.array(sizes, np.int64), view=False)
            if g.version >= 18:
                g.attr("keep_aspect_ratio_policy", ["stretch", "not_larger", "not_smaller"], 0.3)
                if axes and "keep_aspect_ratio_policy" in g.attrs:
                    axes_in_order(g, axes, sizes)
    if dtype == np.float64 and len(g.inputs) < 4:
        g.peers = ("onnxruntime",)  # the reference evaluator multiplies scales in double
    if dtype.kind in "iu":  # onnxruntime takes few integers; the moved floats are the same
        g.peer_form = g.peer_form | {"inputs": [dataclasses.replace(
            i, type="tensor(float)", value=i.value.astype(np.float32)) if k == 0 else i
            for k, i in enumerate(g.peer_form.get("inputs", g.inputs))],
            "output_types": ["tensor(float)"], "types": {}}
        g.peer_after = lambda r: [r[0].astype(dtype)]
    # Places are found in float, scales being float; weights of a cubic or an antialiasing window
    # (up to the whole axis) reach 2.2 in sum along each axis.
    g.tolerance = Tolerance(ulps=2, scale=4 * bounds.sampled(x, max(*shape[2:], *out), max(shape)),
                            in_float=dtype == np.float64)


@op("NonMaxSuppression")
def non_max_suppression(g):
    batch, classes, boxes = g.int(1, 2), g.int(1, 3), g.int(0 if g.chance(0.1) else 1, 9)
    center = g.attr("center_point_box", [0, 1])
    low, size = g.rng.uniform(0, 8, (batch, boxes, 2)), g.rng.uniform(0.5, 5, (batch, boxes, 2))
    if center:
        value = np.concatenate([low, size], -1)
    else:
        value = np.concatenate([low, low + size], -1)
        if g.chance(0.3):
            value = value[..., [2, 3, 0, 1]]
    g.input(value.astype(np.float32))
    g.input(g.rng.permutation(batch * classes * boxes).reshape(batch, classes, boxes)
            .astype(np.float32) / np.float32(100))
    given = g.int(0, 3)
    for k, v in enumerate((np.array([g.int(0, 6)], np.int64),
                           np.array([g.pick([0.1, 0.3, 0.5, 0.9])], np.float32),
                           np.array([g.pick([0.005, 0.1, 0.3])], np.float32))):
        if k < given:
            g.input(v if g.chance(0.6) else v[0], view=False)


@op("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def losses(g):
    dtype = g.dtype("T")
    index = g.dtype("Tind")
    shape = (g.int(1, 4), g.int(1, 5), *g.shape(high=2, empty=False))
    g.attr("reduction", ["none", "sum", "mean"])
    x = g.values(dtype, shape, special=False)
    target = g.rng.integers(0, shape[1], (shape[0], *shape[2:]))
    g.input(x)
    ignore = g.attr("ignore_index", [0, -1, 7]) if g.chance(0.4) else None
    if ignore in (-1, 7):
        target = np.where(g.rng.random(target.shape) < 0.3, ignore, target)
    if ignore is not None and (target == ignore).all():
        raise Redraw  # 0 / 0
    g.input(target.astype(index))
    if g.chance():
        g.input(g.rng.uniform(0.2, 2, shape[1]).astype(dtype))
    # A log softmax, off as in reduce.py, its weighted sum over all rows, and the mean by the sum of
    # the weights (0.2 to 2).
    rows = int(np.prod(shape[2:])) * shape[0]
    each = bounds.FUNCTION + bounds.depth(shape[1]) + 4 * bounds.most(x)
    value = 2 * bounds.most(x) + np.log(shape[1])
    g.tolerance = Tolerance(ulps=2, scale=2 * rows * (each + (bounds.depth(rows) + 2) * value) *
                            (5 if g.attrs.get("reduction", "mean") == "mean" else 1))


@op("Dropout")
def dropout(g):
    dtype = g.dtype("T")
    x = g.input(g.values(dtype, g.shape()))
    if "ratio" in [i.name for i in g.schema.inputs]:
        ratio_type = g.dtype("T1", only=["float", "double"])
        ratio = np.array(g.pick([0.0, 0.5]), ratio_type) if g.chance() else None
        g.input(ratio, view=False)
        g.types.setdefault("T2", "tensor(bool)")
        if g.chance(0.4):
            g.input(np.array(False), view=False)
    else:
        g.attr("ratio", [0.3])
        g.attr("is_test", [1], 1)
    if g.version < 12:
        g.outputs = 1  # what the mask holds in a test is not specified
    g.formula = lambda x, *_: [x, np.ones(x.shape, bool)]
    del x
