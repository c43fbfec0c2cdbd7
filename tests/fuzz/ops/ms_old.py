"""ms_old.py - operators of com.microsoft from before its fusions: texts, sparse matrices, windows with
masks or paddings that are inputs, an LSTM that attends to a memory."""
import numpy as np

from . import bounds
from .case import Redraw, Tolerance, op
from .linear import window, window_attrs
from .ms_attention import feed, lengths, small
from .schemas import MS

PIECES = ["a", "b", "ab", " ", "  ", ",", "über", "日本", "9", "42", "-", "", "\n"]
SEPARATORS = [" ", ",", "[ ,]+", "b", "a|ab", "x*", r"\s", "日", r"\b", "^a", "b$", "[0-9]{2}"]
TOKENS = [".", "a", "ab|a", "[a-z]+", r"[^\s]+", "[0-9]+", "a*", "(?i:AB)", r"\w+", "日?本", "a+?"]


@op("Tokenizer", domain=MS)
def tokenizer(g):
    shape = g.pick([(3,), (1,), (2, 2), (0,), (2, 0)])
    texts = np.empty(int(np.prod(shape)), object)
    texts[:] = ["".join(g.pick(PIECES) for _ in range(g.int(0, 6))) for _ in texts]
    g.attrs |= {"mark": g.int(0, 1), "pad_value": g.pick(["", "#"]), "mincharnum": g.int(1, 2)}
    if g.chance():
        g.attrs["separators"] = [g.pick(SEPARATORS) for _ in range(g.int(1, 3))]
    elif g.chance(0.3):
        g.attrs["separators"] = [""]
    else:
        g.attrs["tokenexp"] = g.pick(TOKENS)
    if "." == g.attrs.get("tokenexp") or [""] == g.attrs.get("separators"):
        g.attrs["mincharnum"] = 1
    feed(g, texts.reshape(shape))


@op("SparseToDenseMatMul", domain=MS)
def sparse_matmul(g):
    """onnxruntime takes A as a sparse tensor only, here it is dense: a formula is the peer."""
    dtype = g.dtype("T1")
    rows, depth, columns = g.int(0, 5), g.int(1, 6), g.int(0, 5)
    a = np.where(g.rng.random((rows, depth)) < 0.4, small(g, dtype, rows, depth), 0).astype(dtype)
    b = small(g, dtype, depth, columns)
    turns = g.attr("transA", [0, 1]), g.attr("transB", [0, 1])
    scale = g.attr("alpha", [0.5, 1.0, -2.0])
    factor = scale if scale is not None and dtype == np.float32 else 1
    feed(g, a.T.copy() if turns[0] else a, b.T.copy() if turns[1] else b)

    def product(a, b):
        wide = np.float64 if dtype.kind == "f" else dtype
        a, b = [m.T if turn else m for m, turn in zip((a, b), turns, strict=True)]
        with np.errstate(all="ignore"):
            return [(a.astype(wide) @ b.astype(wide) * np.asarray(factor).astype(wide))
                    .astype(dtype)]

    g.peers, g.formula = ("formula",), product
    g.sum_tolerance(depth, a, b)


@op("MaxpoolWithMask", domain=MS)
def masked_pool(g):
    g.empty_ok = False
    rank = g.pick([1, 2, 2, 3])
    kernel, strides, _, pads, sizes = window(g, rank)
    if not window_attrs(g, kernel, strides, [1] * rank, pads, 1) and \
            any(s < k for s, k in zip(sizes, kernel, strict=True)):
        raise Redraw
    if "SAME" in g.attrs.get("auto_pad", "") and any(
            k < s for k, s in zip(kernel, strides, strict=True)):
        raise Redraw  # would need negative padding
    planes = (g.int(1, 2), g.int(1, 3))
    mask = (g.rng.random((*g.pick([(1, 1), planes]), *sizes)) < 0.8).astype(np.int32)
    feed(g, small(g, np.dtype(np.float32), *planes, *sizes), mask)
    g.tolerance = Tolerance(ulps=0)


@op("ConvTransposeWithDynamicPads", domain=MS)
def dynamic_pads(g):
    dtype = g.dtype("T", only=["float"])
    rank = g.pick([1, 2, 2, 3])
    kernel, strides = [g.int(1, 4) for _ in range(rank)], [g.int(1, 3) for _ in range(rank)]
    dilations, sizes = [g.int(1, 2) for _ in range(rank)], [g.int(1, 4) for _ in range(rank)]
    groups, inner, outer = g.pick([1, 1, 2]), g.int(1, 3), g.int(1, 3)
    pads = [g.int(0, 1) for _ in range(2 * rank)]
    full = [s * (n - 1) + d * (k - 1) + 1 for s, n, d, k in
            zip(strides, sizes, dilations, kernel, strict=True)]
    if any(f - pads[k] - pads[k + rank] < 1 for k, f in enumerate(full)):
        raise Redraw
    g.attrs |= {"strides": strides, "dilations": dilations, "group": groups}
    x = small(g, dtype, g.int(1, 2), groups * inner, *sizes)
    w = small(g, dtype, groups * inner, outer, *kernel)
    b = small(g, dtype, groups * outer) if g.chance() else None
    feed(g, x, w, np.array(pads, np.int64), b)
    g.sum_tolerance(inner * np.prod(kernel) + 1, x, w, extra=bounds.most(b))


@op("AttnLSTM", domain=MS)
def attending(g):
    dtype = g.dtype("T", only=["float"])
    g.dtype("T1")
    batch, steps, width, hidden = g.int(1, 3), g.int(1, 4), g.int(1, 5), g.pick([1, 3, 8])
    memory, depth, inside = g.int(1, 5), g.int(1, 6), g.int(1, 7)
    out = g.pick([None, 1, 5])
    both = g.attr("direction", ["forward", "reverse", "bidirectional"]) in \
        ("bidirectional", b"bidirectional")
    ways = 2 if both else 1
    g.attrs["hidden_size"] = hidden
    if g.chance(0.2):
        g.attrs["input_forget"] = 1
    if g.chance(0.25):
        g.attrs["clip"] = g.pick([0.3, 1.0, 5.0])

    def half(*shape):
        return (small(g, dtype, *shape) * np.asarray(0.5, dtype)).astype(dtype)

    def some(chance, *shape):
        return half(*shape) if g.chance(chance) else None

    x, w = half(steps, batch, width), half(ways, 4 * hidden, width + (out or depth))
    r, v, m = half(ways, 4 * hidden, hidden), half(ways, inside), half(batch, memory, depth)
    feed(g, x, w, r, some(0.7, ways, 8 * hidden),
         lengths(g, batch, 1, steps) if g.chance(0.4) else None, some(0.5, ways, batch, hidden),
         some(0.5, ways, batch, hidden), some(0.3, ways, 3 * hidden), half(ways, hidden, inside),
         half(ways, depth, inside), v, m,
         lengths(g, batch, 1, memory) if g.chance() else None,
         half(ways, depth + hidden, out) if out else None)
    g.outputs = 3
    # A step: gates of width + context + hidden products, a softmax over the memory on sums of
    # `inside` tanh's, and its mean of M. A step's error enters the next through the gates, whose
    # slopes are at most 1/4: by hidden |R| + context |W| of it.
    w, r, m = bounds.most(w), bounds.most(r), bounds.most(m)
    context = out or depth
    each = bounds.dot(width + context + hidden + 2, max(w, r), max(bounds.most(x), m, 1.0)) + \
        bounds.attention(inside, memory, 1.0, bounds.most(v), 1.0, m)
    g.tolerance = Tolerance(ulps=4, scale=each * sum(
        (1 + (hidden * r + context * w) / 4) ** t for t in range(steps)))
