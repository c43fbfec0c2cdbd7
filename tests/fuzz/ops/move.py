"""move.py - operators that move elements: layout, slices, gathers, scatters, padding, creation."""
import numpy as np
from onnx import helper, numpy_helper

from . import bounds
from .case import Redraw, np_type, op


def data(g, shape=None, variable=None, **kw):
    dtype = g.dtype(variable or g.schema.inputs[0].type_str)
    return g.values(dtype, g.shape(**kw) if shape is None else shape)


def i64(*values):
    return np.array(values, np.int64)


def some_axes(g, rank, count=None, negative=True):
    count = g.int(1, rank) if count is None else count
    axes = [int(a) for a in g.rng.choice(rank, count, replace=False)]
    return [a - rank if negative and g.chance(0.3) else a for a in axes]


def axis_of(g, rank, since_negative=11):
    return g.int(-rank if g.version >= since_negative else 0, rank - 1)


@op("Transpose")
def transpose(g):
    x = g.input(data(g))
    g.attr("perm", lambda: [int(k) for k in g.rng.permutation(x.ndim)])


@op("Reshape")
def reshape(g):
    x = data(g, empty=False if g.chance(0.9) else None)
    sizes, rest = [], x.size
    for _ in range(g.int(0, 4)):
        step = g.pick([d for d in (1, 2, 3, 4, 5, 8) if rest % d == 0]) if rest else g.int(0, 3)
        sizes.append(step)
        rest = rest // step if step else 0
    if x.size:
        sizes.append(rest)
        if g.chance(0.5):
            sizes[g.int(0, len(sizes) - 1)] = -1
        for k in range(min(len(sizes), x.ndim)):
            if sizes[k] == x.shape[k] and g.chance(0.3):
                sizes[k] = 0
    else:
        if g.attr("allowzero", [0, 1]) != 1:
            sizes = [0] * x.ndim  # copies every dimension
        elif x.size != np.prod(sizes):
            sizes.append(0)
    g.input(x)
    g.input(i64(*sizes), view=False)


@op("Flatten")
def flatten(g):
    x = g.input(data(g))
    g.attr("axis", lambda: g.int(-x.ndim if g.version >= 11 else 0, x.ndim))
    if g.attrs.get("axis", 1) > x.ndim:
        raise Redraw


@op("Squeeze")
def squeeze(g):
    shape = list(g.shape(high=3))
    for _ in range(g.int(0, 2)):
        shape.insert(g.int(0, len(shape)), 1)
    ones = [k for k, d in enumerate(shape) if d == 1]
    x = g.input(data(g, shape))
    if ones and g.chance(0.7):
        axes = [int(a) for a in g.rng.choice(ones, g.int(1, len(ones)), replace=False)]
        if g.version >= 11:
            axes = [a - x.ndim if g.chance(0.3) else a for a in axes]
        if g.has("axes"):
            g.attrs["axes"] = sorted(axes)
        else:
            g.input(i64(*axes), view=False)


@op("Unsqueeze")
def unsqueeze(g):
    x = g.input(data(g, high=3))
    rank = x.ndim + g.int(1, 3)
    axes = some_axes(g, rank, rank - x.ndim, g.version >= 11)
    if g.has("axes"):
        g.attrs["axes"] = axes if g.version >= 11 else sorted(axes)
    else:
        g.input(i64(*axes), view=False)


@op("Concat")
def concat(g):
    dtype = g.dtype()
    shape = list(g.shape(low=1))
    axis = axis_of(g, len(shape))
    g.attrs["axis"] = axis
    for _ in range(g.int(1, 4)):
        shape[axis] = g.dim()
        if np.prod(shape) > 4000:
            raise Redraw
        g.input(g.values(dtype, shape))


@op("Split")
def split(g):
    dtype = g.dtype()
    shape = list(g.shape(low=1))
    axis = g.attr("axis", lambda: axis_of(g, len(shape)))
    parts = g.int(1, 4)
    sizes = [g.int(0, 3) for _ in range(parts)]
    even = g.chance(0.4)
    if even:
        sizes = [max(sizes[0], 1)] * parts
        if g.version >= 18 and g.chance():
            sizes[-1] = g.int(1, sizes[0])  # the last one may be smaller
    shape[axis] = sum(sizes)
    g.input(g.values(dtype, shape))
    if not even and g.has("split"):
        g.attrs["split"] = sizes
    elif not even:
        g.input(i64(*sizes), view=False)
    elif g.has("num_outputs"):
        if -(-shape[axis] // parts) != sizes[0]:
            raise Redraw
        g.attrs["num_outputs"] = parts
    if g.version < 18 and len(set(sizes)) > 1 and even:
        raise Redraw
    g.outputs = parts


@op("Slice", "DynamicSlice")
def slice_(g):
    x = data(g, low=1)
    count = g.int(1, x.ndim)
    axes = some_axes(g, x.ndim, count, g.version >= 10)
    starts, ends, steps = [], [], []
    for a in axes:
        d = x.shape[a]
        step = g.pick([1, 1, 1, 2, 3, -1, -2]) if g.version >= 10 else 1
        starts.append(g.pick([0, g.int(-d - 2, d + 2), g.int(0, max(d, 1)), -1]))
        ends.append(g.pick([d, g.int(-d - 2, d + 2), 2 ** 31 - 1 if step > 0 else -2 ** 31]))
        steps.append(step)
    g.input(x)
    g.formula = lambda x, *_: [sliced(x, starts, ends, axes, steps)]
    if g.has("starts"):
        g.attrs |= {"starts": starts, "ends": ends}
        if axes != list(range(count)) or g.chance():
            g.attrs["axes"] = axes
        return
    index = g.dtype("Tind")
    given = axes != list(range(count)) or g.chance(0.5)
    for values in (starts, ends, axes if given else None,
                   steps if set(steps) != {1} or g.chance(0.5) else None):
        if values is not steps or g.name == "Slice":
            g.input(None if values is None else np.array(values, index), view=False)


def sliced(x, starts, ends, axes, steps):
    """Starts and ends are clamped to [0, d], and to [0, d - 1] and [-1, d - 1] when stepping back."""
    for first, last, axis, step in zip(starts, ends, axes, steps, strict=True):
        d = x.shape[axis]
        first, last = (v + d if v < 0 else v for v in (first, last))
        first = min(max(first, 0), d - (step < 0))
        last = min(max(last, -(step < 0)), d - (step < 0))
        x = x.take(range(first, last, step), axis)
    return x


@op("Pad")
def pad(g):
    variable = g.schema.inputs[0].type_str
    dtype = g.dtype(variable)
    shape = g.shape(low=1, high=3 if g.chance(0.7) else 4)
    mode = g.attr("mode", ["constant", "reflect", "edge"] + (["wrap"] if g.version >= 19 else []))
    mode = mode.decode() if isinstance(mode, bytes) else mode
    axes = list(range(len(shape)))
    chosen = axes
    given = g.version >= 18 and g.chance(0.4)
    if given:
        chosen = some_axes(g, len(shape))
    low, high = [], []
    for a in chosen:
        d = shape[a]
        for side in (low, high):
            most = 3 if mode == "constant" else 0 if d == 0 else \
                min(3, d - 1) if mode == "reflect" else min(3, d) if mode == "wrap" else 3
            side.append(g.int(-min(1, d // 3) if mode == "constant" and g.chance(0.3) else 0, most))
    g.input(g.values(dtype, shape))
    if g.has("pads"):
        g.attrs["pads"] = low + high
        g.attr("value", [0.0, 1.5])
        return
    g.input(i64(*low, *high), view=False)
    zero = dtype.name != "float8_e8m0fnu"  # that type has none
    value = g.values(dtype, (), special=False) if g.chance() or not zero else None
    g.input(value, view=False)
    if given:
        g.input(np.array(chosen, g.dtype("Tind") if "Tind" in str(
            [i.type_str for i in g.schema.inputs]) else np.int64), view=False)


@op("Tile")
def tile(g):
    x = g.input(data(g))
    g.input(i64(*[g.int(0 if g.chance(0.2) else 1, 3) for _ in range(x.ndim)]), view=False)


@op("Expand")
def expand(g):
    full = g.shape()
    x = g.input(data(g, g.narrower(full)))
    target = list(full)
    if g.chance(0.3):
        target = list(g.narrower(full))
    g.input(i64(*target), view=False)
    try:
        if np.prod(np.broadcast_shapes(x.shape, tuple(target))) > 6000:
            raise Redraw
    except ValueError:
        raise Redraw from None


# ---- gather and scatter

def indices(g, dtype, high, shape, negative=True):
    return g.rng.integers(-high if negative else 0, high, shape).astype(dtype)


@op("Gather")
def gather(g):
    x = data(g, low=1, high=3, empty=False)
    axis = g.attr("axis", lambda: axis_of(g, x.ndim))
    g.input(x)
    g.input(indices(g, g.dtype("Tind"), x.shape[axis], g.shape(high=2), g.version >= 11))


@op("GatherElements")
def gather_elements(g):
    x = data(g, low=1, empty=False)
    axis = g.attr("axis", lambda: axis_of(g, x.ndim))
    shape = [g.int(1, d) for d in x.shape]
    shape[axis] = g.dim()
    g.input(x)
    g.input(indices(g, g.dtype("Tind"), x.shape[axis], shape))

    def formula(x, at):
        places = list(np.indices(at.shape))
        places[axis] = at
        return [x[tuple(places)]]
    g.formula = formula


@op("GatherND")
def gather_nd(g):
    x = data(g, low=1, empty=False)
    batch = g.int(0, x.ndim - 1) if g.has("batch_dims") and g.chance() else 0
    if batch:
        g.attrs["batch_dims"] = batch
    last = g.int(1, x.ndim - batch)
    shape = x.shape[:batch] + g.shape(high=2) + (last,)
    index = np.stack([g.rng.integers(-x.shape[batch + k], x.shape[batch + k], shape[:-1])
                      for k in range(last)], -1)
    if np.asarray(x[(0,) * (batch + last)]).size * index.size > 8000:
        raise Redraw
    g.input(x)
    g.input(index.astype(np.int64))


def reduction(g, dtype):
    if not g.has("reduction"):
        return "none"
    options = ["none", "add", "mul"] + (["max", "min"] if g.version >= 18 else [])
    if dtype == object or dtype == bool or dtype.kind == "c" or dtype.name.startswith("float8"):
        options = ["none"]
    return g.attr("reduction", options)


def scatter_type(g):
    """Values for a scatter: sums of large numbers depend on the order."""
    return g.dtype()


@op("Scatter", "ScatterElements")
def scatter_elements(g):
    dtype = scatter_type(g)
    shape = g.shape(low=1, empty=False)
    axis = g.attr("axis", lambda: axis_of(g, len(shape)))
    how = reduction(g, dtype)
    if g.name == "Scatter":
        g.peer_form = {"name": "ScatterElements", "opset": 11}
    sub = [g.int(1, d) for d in shape]
    index = indices(g, np.int64, shape[axis], sub, g.version >= 11)
    if how in ("none", b"none"):  # equal indices leave the order open
        order = np.argsort(g.rng.random(sub[:axis % len(shape)] + [shape[axis]] +
                                        sub[axis % len(shape) + 1:]), axis=axis)
        index = order.take(range(sub[axis]), axis)
    g.input(g.values(dtype, shape, special="finite sums" if how in ("max", "min") else False),
            repeat=False)
    g.input(index.astype(g.dtype("Tind")))
    g.input(g.values(dtype, sub, special=False))
    updates_bound(g, how, dtype)


def updates_bound(g, how, dtype):
    """Updates of one place, one after the other in any order, each rounded to the type."""
    if how in ("none", b"none"):
        return
    g.promote = False
    data, index, updates = (i.value for i in g.inputs)
    _, many = np.unique(index.reshape(-1, index.shape[-1]) if g.name == "ScatterND" else index,
                        return_counts=True, axis=0 if g.name == "ScatterND" else None)
    count = int(many.max(initial=1)) if g.name == "ScatterND" else updates.size
    deep, u, v = min(count, updates.size), bounds.most(updates), bounds.most(data)
    if how in ("add", b"add"):
        g.tolerance.scale = bounds.unit(dtype) * (deep + 1) * (v + deep * u)
    elif how in ("mul", b"mul"):
        g.tolerance.ulps = bounds.unit(dtype) * (deep + 1)


@op("ScatterND")
def scatter_nd(g):
    dtype = scatter_type(g)
    shape = g.shape(low=1, empty=False)
    last = g.int(1, len(shape))
    how = reduction(g, dtype)
    cells = int(np.prod(shape[:last]))
    count = g.int(1, min(cells, 12))
    flat = g.rng.choice(cells, count, replace=how not in ("none", b"none"))
    index = np.stack(np.unravel_index(flat, shape[:last]), -1).astype(np.int64)
    if g.version >= 11 and g.chance(0.3):
        index = index - np.array(shape[:last])
    if g.chance(0.3):
        index = index[:, None]
    g.input(g.values(dtype, shape, special=False))
    g.input(index)
    g.input(g.values(dtype, index.shape[:-1] + shape[last:], special=False))
    updates_bound(g, how, dtype)


@op("TensorScatter")
def tensor_scatter(g):
    dtype = g.dtype()
    shape = list(g.shape(low=2, empty=False))
    axis = g.attr("axis", lambda: g.pick([a for a in range(-len(shape), len(shape)) if
                                          a % len(shape)]))
    if axis % len(shape) == 0:
        raise Redraw
    update = list(shape)
    update[axis] = g.int(1, shape[axis])
    mode = g.attr("mode", ["linear", "circular"])
    most = shape[axis] - 1 if mode == "circular" else shape[axis] - update[axis]
    g.input(g.values(dtype, shape))
    g.input(g.values(dtype, update))
    g.input(g.rng.integers(0, most + 1, shape[0]).astype(np.int64)
            if g.chance(0.8) else None)


@op("OneHot")
def one_hot(g):
    index, depth, dtype = g.dtype("T1"), g.dtype("T2"), g.dtype("T3")
    shape = g.shape(low=1, high=3)
    many = g.int(1, 9)
    axis = g.attr("axis", lambda: g.int(-len(shape) - 1, len(shape)))
    assert axis is not None
    # Fractions in index and depth are truncated in ways that the peers don't share.
    x = g.rng.integers(-many - 2 if index.kind != "u" and g.version >= 11 else 0, many + 2, shape)
    if g.name == "OneHot" and g.version < 11:
        x = np.abs(x) % many
    g.input(x.astype(index))
    g.input(np.asarray(many).astype(depth), view=False)
    g.input(g.values(dtype, (2,)), view=False)
    g.formula = lambda x, depth, values: [hot(x, many, values, axis)]
    g.peers = ("onnxruntime", "formula")  # the reference evaluator computes with the two values


def hot(x, depth, values, axis):
    """values[1] at index mod depth for indices in [-depth, depth - 1], values[0] elsewhere."""
    at = x.astype(np.int64)
    at = np.expand_dims(np.where((at < -depth) | (at >= depth), depth, at % depth), axis)
    form = [1] * at.ndim
    form[axis] = depth
    return np.where(at == np.arange(depth).reshape(form), values[1], values[0])


@op("Compress")
def compress(g):
    x = data(g, low=1)
    axis = g.attr("axis", lambda: axis_of(g, x.ndim)) if g.chance(0.7) else None
    most = x.size if axis is None else x.shape[axis]
    g.input(x)
    g.input(g.values(bool, (g.int(0, most),)))


@op("ReverseSequence")
def reverse_sequence(g):
    dtype = g.dtype()
    shape = g.shape(low=2, empty=False)
    batch = g.pick([0, 1])
    g.attrs |= {"batch_axis": batch, "time_axis": 1 - batch}
    g.input(g.values(dtype, shape))
    g.input(g.rng.integers(1, shape[1 - batch] + 1, shape[batch]).astype(np.int64))


@op("DepthToSpace", "SpaceToDepth")
def depth_space(g):
    dtype = g.dtype()
    block = g.int(1, 3)
    n, c, h, w = g.few(1, 2), g.int(1, 3), g.int(1, 4), g.int(1, 4)
    g.attrs["blocksize"] = block
    mode = g.attr("mode", ["DCR", "CRD"])
    shape = (n, c * block * block, h, w) if g.name[0] == "D" else (n, c, h * block, w * block)
    g.input(g.values(dtype, shape))
    del mode


@op("Trilu")
def trilu(g):
    x = g.input(data(g, low=2))
    g.attr("upper", [0, 1])
    if g.chance(0.7):
        g.input(np.array(g.pick([g.int(-5, 5), 0, 1, -1, 40, -40]), np.int64), view=False)
    del x


@op("CenterCropPad")
def center_crop_pad(g):
    x = g.input(data(g, low=1, empty=False))
    count = x.ndim
    if g.chance():
        axes = some_axes(g, x.ndim)
        g.attrs["axes"] = axes
        count = len(axes)
    g.input(g.rng.integers(1, 9, count).astype(g.dtype("Tind")), view=False)


@op("Unique")
def unique(g):
    dtype = g.dtype()
    g.regime = "whole"
    shape = g.shape(low=1, high=3, empty=False)
    if dtype == object:
        x = g.text(shape, ["a", "b", "c", ""])
    elif dtype == bool or dtype.kind in "iu":
        x = g.values(dtype, shape) if dtype == bool else g.whole(dtype, shape, low=0, high=5)
    else:
        x = g.values(dtype, shape)
    g.attr("axis", lambda: g.int(-x.ndim, x.ndim - 1))
    if g.attr("sorted", [0, 1]) == 0:
        g.formula = lambda x: first_seen(x, g.attrs.get("axis"))[:g.outputs]
    g.outputs = g.int(1, 4)
    g.input(x)


def first_seen(x, axis):
    """Unique without sorting: in the order of appearance, whole slices when there is an axis."""
    rows = list(x.reshape(-1)) if axis is None else list(np.moveaxis(x, axis, 0))
    kept, first, index, count = [], [], [], []
    for k, row in enumerate(rows):
        same = [j for j, r in enumerate(kept) if np.array_equal(r, row)]
        if same:
            index.append(same[0])
            count[same[0]] += 1
            continue
        index.append(len(kept))
        kept.append(row)
        first.append(k)
        count.append(1)
    values = np.array(kept, x.dtype) if axis is None else np.stack(kept, axis)
    return [values, np.array(first), np.array(index), np.array(count)]


@op("NonZero")
def non_zero(g):
    dtype = g.dtype()
    g.regime = g.pick(["whole", "special"])
    shape = g.shape(low=1)
    if dtype == object:
        raise Redraw  # whether a text is zero is not specified
    g.input(g.values(dtype, shape))


@op("EyeLike")
def eye_like(g):
    g.promote = False
    dtype = g.dtype("T1")
    out = g.attr("dtype", lambda: helper.np_dtype_to_tensor_dtype(g.dtype("T2"))) \
        if g.chance() else None
    if out is None:
        g.bind("T2", dtype)
    g.attr("k", lambda: g.int(-4, 4))
    g.input(g.values(dtype, g.shape(rank=2)))


@op("Range")
def range_(g):
    dtype = g.dtype()
    if g.has("stash_type"):
        g.attrs["stash_type"] = 1
    if dtype.kind in "iu":
        start, count, step = g.int(-9, 9), g.int(-2, 20), g.pick([1, 2, 3, -1, -2])
        if dtype.kind == "u":
            start, step = abs(start), abs(step)
        limit = start + count * step
        limit = max(limit, 0) if dtype.kind == "u" else limit
    else:
        start, step = g.pick([0.0, 1.5, -3.25]), g.pick([1.0, 0.5, -0.25, 2.0])
        limit = start + step * g.int(-2, 20) + step * 0.5
    for v in (start, limit, step):
        g.input(np.array(v, dtype), view=False)


@op("ConstantOfShape")
def constant_of_shape(g):
    g.promote = False
    dtype = g.dtype("T2", only=None if g.chance(0.8) else ["float"])
    if dtype != np.float32 or g.chance():
        g.attrs["value"] = numpy_helper.from_array(g.values(dtype, (1,)), "v")
    g.input(i64(*g.shape()), view=False)


@op("Constant")
def constant(g):
    g.promote = False
    choices = [k for k in g.schema.attributes if k != "sparse_value"]
    kind = g.pick(choices)
    table = {"value_int": lambda: g.int(-9, 9), "value_ints": lambda: [g.int(-9, 9)] * g.int(0, 4),
             "value_float": lambda: 0.5, "value_floats": lambda: [0.5, 1.5],
             "value_string": lambda: "text", "value_strings": lambda: ["a", "", "ü"]}
    names = {"int": "int64", "flo": "float", "str": "string"}
    if kind == "value":
        dtype = g.dtype("T")
        g.attrs[kind] = numpy_helper.from_array(g.values(dtype, g.shape()), "v")
    else:
        g.types["T"] = f"tensor({names[kind[6:9]]})"
        g.attrs[kind] = table[kind]()


@op("Col2Im")
def col2im(g):
    dtype = g.dtype()
    if dtype == object:
        raise Redraw  # there is no sum of texts
    rank = g.pick([1, 2, 2, 3])
    block = [g.int(1, 3) for _ in range(rank)]
    strides, dilations = [g.int(1, 2) for _ in block], [g.int(1, 2) for _ in block]
    pads = [g.int(0, 1) for _ in range(2 * rank)]
    image, blocks = [], 1
    for k in range(rank):
        extent = dilations[k] * (block[k] - 1) + 1
        many = g.int(1, 3)
        size = extent + (many - 1) * strides[k] - pads[k] - pads[k + rank]
        if size < 1:
            raise Redraw
        image.append(size)
        blocks *= many
    g.attrs |= {"strides": strides, "dilations": dilations, "pads": pads}
    channels = g.int(1, 2)
    x = g.input(g.values(dtype, (g.int(1, 2), channels * int(np.prod(block)), blocks),
                         special=False))
    g.sum_tolerance(np.prod(block), x)
    g.input(i64(*image), view=False)
    g.input(i64(*block), view=False)


assert np_type
