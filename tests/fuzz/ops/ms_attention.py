"""ms_attention.py - the attention family of com.microsoft, with caches, masks and rotations."""
import ml_dtypes
import numpy as np

from . import bounds
from .case import Input, Redraw, Tolerance, op
from .schemas import MS


def feed(g, *values, fixed=()):
    """The inputs in the order of the schema; those at the positions `fixed` as initializers. What an
    input repeats along an axis (Gen.input) is so in the caller's array, too."""
    for k, v in enumerate(values):
        given = g.input(v, constant=True if k in fixed and v is not None else None)
        if isinstance(v, np.ndarray) and v.shape and v.flags.writeable:
            v[...] = given


def small(g, dtype, *shape):
    """Ordinary numbers: an attention of infinities is NaN everywhere."""
    return g.values(dtype, shape, special=False)


def lengths(g, batch, low, high):
    return g.rng.integers(low, high + 1, batch).astype(np.int32)


def padding(g, batch, total):
    """A 0/1 mask of which no row is without a 1."""
    mask = (g.rng.random((batch, total)) < 0.7).astype(np.int32)
    mask[:, 0] = 1
    return mask


def scores_of(g, size):
    return g.attr("scale", [0.5, 0.3], 0.3) or 1 / np.sqrt(size)


@op("Attention", domain=MS)
def attention(g):
    dtype = g.dtype("T")
    g.dtype("M")
    batch, new, heads, size = g.few(1, 3), g.int(1, 5), g.pick([1, 2, 3]), g.pick([2, 4, 8])
    width, past = g.pick([4, 6, 8]), g.pick([0, 0, 1, 3])
    v_size = g.pick([size, size, 3])
    if v_size != size:
        past = 0  # one tensor holds keys and values
        g.attrs["qkv_hidden_sizes"] = [heads * size, heads * size, heads * v_size]
    total = new + past
    g.attrs["num_heads"] = heads
    g.attr("unidirectional", [0, 1])
    scale = scores_of(g, size)
    columns = heads * (2 * size + v_size)
    x, w = small(g, dtype, batch, new, width), small(g, dtype, width, columns)
    b = small(g, dtype, columns)
    mask = g.pick([None, lengths(g, batch, 1, total), padding(g, batch, total),
                   np.concatenate([lengths(g, batch, 1, total), np.zeros(batch, np.int32)]),
                   np.repeat(padding(g, batch, total)[:, None], new, 1)])
    bias = small(g, dtype, g.pick([1, batch]), g.pick([1, heads]), new, total) \
        if g.chance(0.3) and not past else None  # documented as one or the other
    feed(g, x, w, b, mask, small(g, dtype, 2, batch, heads, past, size) if past else None, bias)
    g.outputs = 2 if past else 1
    masked(g, width, size, total, scale, [x, w, b], bias)


def masked(g, width, size, total, scale, projection, bias, past=None):
    """The bound of attention behind a projection x W + b, of `width` products."""
    x, w, b = (bounds.most(v) for v in projection)
    each = width * x * w + b
    off = bounds.dot(width + 1, x, w, extra=b)
    top = max([each] + [bounds.most(i.value) for i in g.inputs[4:5]])
    g.tolerance = Tolerance(ulps=4, scale=bounds.attention(
        size, total, scale, top, top, top, off, off, off, bounds.most(bias)))


@op("QAttention", domain=MS)
def qattention(g):
    t1, t2 = g.dtype("T1"), g.dtype("T2")
    g.dtype("T3", only=["float"])
    g.dtype("T4")
    batch, new, heads, size = g.int(1, 2), g.int(1, 4), g.pick([1, 2]), g.pick([2, 4])
    width, past = g.pick([4, 8]), g.pick([0, 0, 2])
    total, columns, f32 = new + past, 3 * heads * size, np.dtype(np.float32)
    g.attrs["num_heads"] = heads
    g.attr("unidirectional", [0, 1])
    g.promote = False
    g.regime = "plain"
    per_column = g.chance(0.3)
    scales = g.rng.uniform(0.005, 0.02, (columns,) if per_column else ()).astype(f32)
    zero = g.whole(t2, (), low=-20, high=130) if not per_column else np.zeros(columns, t2)
    mask = g.pick([None, lengths(g, batch, 1, total), padding(g, batch, total)])
    b = small(g, f32, columns)
    feed(g, g.whole(t1, (batch, new, width), low=-128, high=255),
         g.whole(t2, (width, columns), low=-128, high=255), b, np.array(0.02, f32),
         np.asarray(scales), mask, g.whole(t1, (), low=0, high=200), zero,
         small(g, f32, 2, batch, heads, past, size) if past else None, fixed=(1, 4, 7))
    g.outputs = 2 if past else 1
    # Products are exact; what remains is one rounding each of the scale, the product and the bias.
    top = width * 0.02 * 0.02 * 255 * 255 + bounds.most(b)
    g.tolerance = Tolerance(ulps=4, scale=bounds.attention(
        size, total, 1 / np.sqrt(size), top, top, top, 3 * top, 3 * top, 3 * top))
    if t1 == np.int8:  # no kernel: the products it stands for, as the float operator
        x, w, zx, zw = (g.inputs[k].value for k in (0, 1, 6, 7))
        whole = [((x.astype(np.float64) - zx) * g.inputs[3].value),
                 ((w.astype(np.float64) - zw) * g.inputs[4].value)]
        parts = [Input(f"x{k}", v.astype(f32), "tensor(float)") for k, v in enumerate(whole)]
        g.peer_form = {"name": "Attention", "types": {},
                       "inputs": [*parts, g.inputs[2], g.inputs[5], *g.inputs[8:]]}


@op("MultiHeadAttention", domain=MS)
def multi_head(g):
    dtype = g.dtype("T")
    g.types["M"], g.types["QK"] = "tensor(int32)", g.types["T"]
    batch, new, heads, size = g.few(1, 3), g.int(1, 5), g.pick([1, 2, 3]), g.pick([2, 4, 8])
    how = g.pick(["flat", "flat", "cross", "packed kv", "packed qkv"])
    past = g.pick([0, 0, 2, 3]) if how == "flat" else 0
    keys = new if how == "packed qkv" or past else g.int(1, 5)
    v_size = g.pick([size, 3]) if how == "flat" and not past else size
    total = keys + past
    g.attrs["num_heads"] = heads
    if how != "cross":
        g.attr("unidirectional", [0, 1], 0.4)
    scale = scores_of(g, size)
    q, k, v = small(g, dtype, batch, new, heads * size), None, None
    if how == "flat":
        k, v = small(g, dtype, batch, keys, heads * size), small(g, dtype, batch, keys,
                                                                 heads * v_size)
    elif how == "cross":
        k, v = (small(g, dtype, batch, heads, keys, size) for _ in range(2))
    elif how == "packed kv":
        k = small(g, dtype, batch, keys, heads, 2, size)
    else:
        q = small(g, dtype, batch, new, heads, 3, size)
    bias = small(g, dtype, heads * (2 * size + v_size)) if g.chance(0.4) and how == "flat" else None
    mask = g.pick([None, padding(g, batch, total), lengths(g, batch, 1, total)])
    if how == "cross" and mask is not None:
        mask = padding(g, batch, total)
    extra = small(g, dtype, g.pick([1, batch]), g.pick([1, heads]), new, total) \
        if g.chance(0.4) else None
    pasts = [small(g, dtype, batch, heads, past, size) for _ in range(2)] if past else [None] * 2
    feed(g, q, k, v, bias, mask, extra, *pasts)
    if how.startswith("packed"):  # onnxruntime has these on a GPU only: it gets them apart
        apart_form(g, heads * size)
    g.outputs = 3 if past else 1
    if past and g.chance(0.3):
        g.outputs = 4
    tops = [bounds.most(a) + bounds.most(bias) for a in (q, k if k is not None else q,
                                                         v if v is not None else q)]
    g.tolerance = Tolerance(ulps=4, scale=bounds.attention(
        size, total, scale, tops[0], max(tops[1], bounds.most(pasts[0])),
        max(tops[1], tops[2], bounds.most(pasts[1])), *tops, bounds.most(extra)))


def apart_form(g, width):
    """Packed queries, keys and values as the flat ones they are."""
    packed = g.inputs[0].value if g.inputs[0].value.ndim == 5 else g.inputs[1].value
    parts = [packed[:, :, :, i].reshape(*packed.shape[:2], width) for i in range(packed.shape[3])]
    if len(parts) == 2:
        parts.insert(0, g.inputs[0].value)
    apart = [Input(f"x{k}", np.ascontiguousarray(v), g.inputs[0].type)
             for k, v in enumerate(parts)]
    g.peer_form = {"inputs": apart + [Input("", None, "")] * (3 - len(g.inputs)) + g.inputs[3:]}


@op("DecoderMaskedMultiHeadAttention", domain=MS)
def masked_multi_head(g):
    dtype = g.dtype("T")
    g.types["M"], g.types["QK"] = "tensor(int32)", g.types["T"]
    g.promote = dtype != np.float32
    batch, heads, size, room = g.int(1, 3), g.pick([1, 2]), g.pick([4, 8]), g.int(3, 6)
    width = g.pick([None, 1, 2])
    batch = batch * (width or 1)
    length = g.int(1, room - 1)
    g.attrs["num_heads"] = heads
    scale = scores_of(g, size)
    q = small(g, dtype, batch, 1, heads * size)
    if g.chance(0.3):  # cross attention: keys and values as they are
        k, v = (small(g, dtype, batch, heads, room, size) for _ in range(2))
        feed(g, q, k, v, padding(g, batch, room) if g.chance() else None)
        g.outputs, g.unwanted = 4, (1, 2)
        g.attrs["output_qk"] = 1
        total = room
    else:
        k, v = (small(g, dtype, batch, 1, heads * size) for _ in range(2))
        g.attrs["past_present_share_buffer"] = 1
        total = length + 1
        # What a cache holds behind the past is nobody's: both sides see the same there.
        pasts = [small(g, dtype, batch, heads, room, size) for _ in range(2)]
        beams = None
        if width:
            beams = g.rng.integers(0, width, (batch // width, width, room)).astype(np.int32)
        feed(g, q, k, v, padding(g, batch, total) if g.chance(0.3) else None,
             small(g, dtype, 1, heads, 1, total) if g.chance(0.3) else None, *pasts,
             np.array([length], np.int32), None if beams is None else np.array([width], np.int32),
             beams, small(g, dtype, 3 * heads * size) if g.chance(0.3) else None)
        g.outputs = 3
    top = 2 * max(bounds.most(i.value) for i in g.inputs if i.type and "float" in i.type)
    g.tolerance = Tolerance(ulps=4, scale=bounds.attention(size, total, scale, top, top, top, top,
                                                           top, top, top))


def tables(g, dtype, rows, half):
    angles = g.rng.uniform(-3, 3, (rows, half))
    return np.cos(angles).astype(dtype), np.sin(angles).astype(dtype)


@op("GroupQueryAttention", domain=MS)
def group_query(g):
    dtype = g.dtype("T", only=["float", "float16"])
    g.promote = False
    kv, ratio, size = g.pick([1, 2]), g.pick([1, 2, 3]), g.pick([8, 16])
    heads, batch = kv * ratio, g.int(1, 3)
    if g.attr("do_rotary", [0, 1], 0.6):
        size = 16  # rotations take multiples of 16
    form = g.pick(["prompt", "decode", "decode", "chunk"])
    new = g.int(1, 6) if form == "prompt" else 1 if form == "decode" else g.int(2, 4)
    if form == "chunk":
        batch = 1
    behind = g.int(1, 6) if form != "prompt" else 0
    total = new + behind
    lens = np.full(batch, total - 1, np.int32)
    if form == "decode" and g.chance():
        lens = g.rng.integers(0, total, batch).astype(np.int32)
        lens[g.int(0, batch - 1)] = total - 1
    if form == "prompt" and batch > 1 and g.chance(0.4):
        lens = g.rng.integers(0, total, batch).astype(np.int32)
        lens[g.int(0, batch - 1)] = total - 1
    cache = 0 if form == "prompt" and g.chance() else total + g.pick([0, 0, 3]) \
        if form != "prompt" else total
    if form != "prompt" and g.chance(0.3) and np.all(lens == total - 1):
        cache = behind
    packed = g.chance(0.3)
    g.attrs |= {"num_heads": heads, "kv_num_heads": kv}
    rotary = g.attrs.get("do_rotary")
    if rotary:
        g.attr("rotary_interleaved", [0, 1])
    scale = scores_of(g, size)
    g.attr("softcap", [2.0, 5.0], 0.2)
    g.attr("local_window_size", [1, 2, 4], 0.3)
    if g.chance(0.15):
        g.attrs["smooth_softmax"] = 1
    width = heads * size
    q = small(g, dtype, batch, new, width + 2 * kv * size if packed else width)
    k, v = (None, None) if packed else (small(g, dtype, batch, new, kv * size) for _ in range(2))
    cos, sin = tables(g, dtype, total + 4, size // 2) if rotary else (None, None)
    sink = small(g, dtype, heads) if g.chance(0.2) and "smooth_softmax" not in g.attrs else None
    bias = small(g, dtype, g.pick([1, batch]), g.pick([1, heads]), new, total) \
        if g.chance(0.2) and form != "prompt" else None
    pasts = caches(g, dtype, batch, kv, cache, size, lens, new)
    # Rows behind a sequence's end are padding; the kernels write there what they like.
    feed(g, q, k, v, *[p.copy() for p in pasts], lens, np.array(total, np.int32), cos, sin, None,
         bias, sink)
    g.inputs[3].value, g.inputs[4].value = pasts
    g.outputs = 3
    g.types["T_CACHE"] = g.types["T"]
    top = 2 * max(bounds.most(a) for a in (q, k, v, *pasts))
    g.tolerance = Tolerance(ulps=4, scale=bounds.attention(
        size, total + 1, scale, top, top, top, 3 * top, 3 * top, 3 * top, bounds.most(bias)))
    if np.any(lens + 1 < new):
        g.ignore = (np.arange(new)[None, :] > lens[:, None])[..., None]


def caches(g, dtype, batch, heads, room, size, lens, new):
    """Keys and values so far; what lies behind the sequences is 0."""
    out = []
    for _ in range(2):
        past = small(g, dtype, batch, heads, room, size)
        for b in range(batch):
            past[b, :, max(int(lens[b]) + 1 - new, 0):] = 0
        out.append(past)
    return out


@op("SparseAttention", domain=MS)
def sparse(g):
    dtype = g.dtype("T", only=["float", "float16"])
    g.dtype("M")
    kv, ratio, size, batch, block = g.pick([1, 2]), g.pick([1, 2]), 16, g.int(1, 2), 16
    heads, room = kv * ratio, 64
    form = g.pick(["prompt", "decode"])
    total = g.int(1, 40)
    new = total if form == "prompt" else 1
    lens = np.full(batch, total, np.int32)
    blocks = room // block
    layouts = g.pick([n for n in (1, 2) if heads % n == 0])
    rows, columns = [], []
    for _ in range(layouts):
        keep = g.rng.random((blocks, blocks)) < 0.6
        keep &= np.tri(blocks, dtype=bool)
        keep[np.arange(blocks), np.arange(blocks)] = True
        rows.append(np.concatenate([[0], np.cumsum(keep.sum(1))]))
        columns.append(np.nonzero(keep)[1])
    most = max(len(c) for c in columns)
    columns = [np.concatenate([c, np.full(most - len(c), -1)]) for c in columns]
    g.attrs |= {"num_heads": heads, "kv_num_heads": kv, "sparse_block_size": block}
    rotary = g.attr("do_rotary", [0, 1])
    if rotary:
        g.attr("rotary_interleaved", [0, 1])
    scale = scores_of(g, size)
    packed = g.chance(0.3)
    q = small(g, dtype, batch, new, (heads + 2 * kv if packed else heads) * size)
    k, v = (None, None) if packed else (small(g, dtype, batch, new, kv * size) for _ in range(2))
    cos, sin = tables(g, dtype, room, size // 2) if rotary else (None, None)
    pasts = caches(g, dtype, batch, kv, room, size, lens - 1, new)
    feed(g, q, k, v, *[p.copy() for p in pasts], np.array(rows, np.int32), np.array(columns, np.int32),
         np.array([total], np.int32), lens, cos, sin)
    for i, past in zip(g.inputs[3:5], pasts, strict=True):
        i.value, i.view, i.constant = past, False, False
    g.shared = {"y1": "x3", "y2": "x4"}
    g.outputs = 3
    top = 2 * max(bounds.most(a) for a in (q, k, v, *pasts))
    g.tolerance = Tolerance(ulps=4, scale=bounds.attention(
        size, total, scale, top, top, top, 3 * top, 3 * top, 3 * top))


# ---- rotations

@op("RotaryEmbedding", "MRotaryEmbedding", domain=MS)
def rotary(g):
    dtype = g.dtype("T")
    g.dtype("M")
    many = g.name[0] == "M"
    batch, heads, new, size = g.few(1, 3), g.int(1, 3), g.int(1, 4), g.pick([8, 12])
    part = g.pick([size, size, 4]) if not many else size
    flat = g.chance(0.6) or part != size
    if part != size:
        g.attrs |= {"rotary_embedding_dim": part, "num_heads": heads}
    elif flat:
        g.attrs["num_heads"] = heads
    g.attr("interleaved", [0, 1])
    rows, half = 10, part // 2
    x = small(g, dtype, *((batch, new, heads * size) if flat else (batch, heads, new, size)))
    if many:
        cuts = sorted(g.int(0, half) for _ in range(2))
        g.attrs["mrope_section"] = [cuts[0], cuts[1] - cuts[0], half - cuts[1]]
        g.attr("mrope_layout", [0, 1])
        where = g.rng.integers(0, rows, (3, batch, new))
    else:
        where = g.rng.integers(0, rows, (batch, new)) if g.chance() else \
            np.array([g.int(0, rows - new)])
        if not flat and part == size and where.ndim == 2 and g.chance(0):
            raise Redraw
    feed(g, x, where.astype(np.int64), *tables(g, dtype, rows, half))
    # x cos - y sin: a sum of two products.
    g.tolerance = Tolerance(ulps=2, scale=bounds.dot(2, x, 1.0))


@op("LinearAttention", domain=MS)
def linear_attention(g):
    dtype = g.dtype("T")
    g.types["S"] = g.types["T"]
    batch, heads, ratio, new = g.int(1, 2), g.int(1, 2), g.pick([1, 2]), g.int(1, 4)
    dk, dv = g.pick([2, 4]), g.pick([2, 3])
    rule = g.pick(["linear", "gated", "delta", "gated_delta"])
    g.attrs |= {"q_num_heads": heads * ratio, "kv_num_heads": heads, "update_rule": rule}
    scale = scores_of(g, dk)
    g.regime = "plain"
    gated, delta = "gated" in rule, "delta" in rule
    half = np.asarray(0.5, dtype)
    values = [(small(g, dtype, batch, new, h * d) * half).astype(dtype)
              for h, d in ((heads * ratio, dk), (heads, dk), (heads, dv))]
    past = small(g, dtype, batch, heads, dk, dv) if g.chance() else None
    feed(g, *values, past,
         g.real(dtype, (batch, new, heads * g.pick([1, dk])), low=-1, high=-0.01) if gated else None,
         g.real(dtype, (batch, new, heads), low=0.1, high=0.9) if delta else None)
    g.outputs = 2
    g.tolerance = Tolerance(ulps=4, scale=state_bound(new, dk, scale, *values, past))


def state_bound(new, dk, scale, q, k, v, past):
    """A state S <- decay S + k (v - k' S)': per token each element takes 3 products and a sum of dk
    (delta), which grows |S| by at most (1 + dk |k|^2) |S| + |k||v|; errors grow with it. The output
    q' S is a dot product of dk terms more."""
    q, k, v, state = (bounds.most(x) for x in (q, k, v, past))
    off = state
    for _ in range(new):
        grown = (1 + dk * k * k) * state + k * v
        off = (1 + dk * k * k) * off + (dk + 6) * grown
        state = grown
    return max(off, dk * scale * q * off + (dk + 2) * dk * scale * q * state)


@op("CausalConvWithState", domain=MS)
def causal_conv(g):
    dtype = g.dtype("T")
    batch, new, taps, dilation = g.few(1, 3), g.int(1, 6), g.int(1, 4), g.pick([1, 1, 2])
    last = g.chance(0.4)
    g.attr("activation", ["none", "silu", "swish"])
    if dilation > 1:
        g.attrs["dilation"] = dilation
    inner = (g.int(1, 4),) if not last or g.chance(0.7) else (g.int(1, 2), g.int(1, 3))
    channels = int(np.prod(inner))
    shape = (batch, new, *inner) if last else (batch, channels, new)
    kept = (taps - 1) * dilation
    state = (batch, kept, *inner) if last else (batch, channels, kept)
    if last:
        g.attrs["channels_last"] = 1
    x, w = small(g, dtype, *shape), small(g, dtype, channels, 1, taps)
    b = small(g, dtype, channels) if g.chance() else None
    past = small(g, dtype, *state) if g.chance() and kept else None
    feed(g, x, w, b, past)
    g.outputs = 2
    top = max(bounds.most(x), bounds.most(past))
    # silu's slope is below 1.1.
    g.tolerance = Tolerance(ulps=bounds.FUNCTION,
                            scale=1.1 * bounds.dot(taps + 1, top, w, extra=bounds.most(b)))


assert ml_dtypes
