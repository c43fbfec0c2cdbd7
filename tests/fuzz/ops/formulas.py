"""formulas.py - operators written in numpy from the specification alone, in double or int64: peers
where neither onnxruntime nor the reference evaluator has all cases of an operator.

Attributes come as the dict that the generator drew, defaults filled in here.
"""
import math

import numpy as np

erf = np.vectorize(math.erf, otypes=[np.float64])


def double(x):
    return np.asarray(x).astype(np.float64)


# ---- windows: convolution and pooling

def window_pads(attrs, sizes, kernel, strides, dilations):
    """[begin..., end...]: `pads`, or what auto_pad makes of sizes, strides and kernels."""
    rank, how = len(sizes), attrs.get("auto_pad", "NOTSET")
    if how == "NOTSET":
        return list(attrs.get("pads", [0] * (2 * rank)))
    if how == "VALID":
        return [0] * (2 * rank)
    totals = [max((-(-n // s) - 1) * s + d * (k - 1) + 1 - n, 0) for n, k, s, d in
              zip(sizes, kernel, strides, dilations, strict=True)]
    less, more = [t // 2 for t in totals], [t - t // 2 for t in totals]
    return less + more if how == "SAME_UPPER" else more + less


def taps(x, kernel, strides, dilations, counts):
    """[N, C, *sizes] as [N, C, *counts, *kernel]: every tap of every window."""
    rank, index = len(kernel), []
    for k in range(rank):
        at = np.arange(counts[k])[:, None] * strides[k] + np.arange(kernel[k])[None] * dilations[k]
        shape = [1] * (2 * rank)
        shape[k], shape[rank + k] = counts[k], kernel[k]
        index.append(at.reshape(shape))
    return x[(slice(None), slice(None), *index)]


def padded(x, pads, value, extra=None):
    rank = x.ndim - 2
    ends = [pads[rank + k] + (extra[k] if extra else 0) for k in range(rank)]
    return np.pad(x, [(0, 0), (0, 0)] + [(pads[k], ends[k]) for k in range(rank)],
                  constant_values=value)


def convolution(x, w, attrs, pad=0):
    """Conv without a bias, in the type of x and w (int64: exact). Padding has the value `pad`."""
    kernel, rank, groups = w.shape[2:], w.ndim - 2, attrs.get("group", 1)
    strides, dilations = (attrs.get(k, [1] * rank) for k in ("strides", "dilations"))
    pads = window_pads(attrs, x.shape[2:], kernel, strides, dilations)
    wide = padded(x, pads, pad)
    counts = [(n - d * (k - 1) - 1) // s + 1 for n, k, s, d in
              zip(wide.shape[2:], kernel, strides, dilations, strict=True)]
    t = taps(wide, kernel, strides, dilations, counts)
    inner, outer, out = w.shape[1], w.shape[0] // groups, []
    for g in range(groups):
        part = t[:, g * inner:(g + 1) * inner].reshape(x.shape[0], inner, *counts, -1)
        weight = w[g * outer:(g + 1) * outer].reshape(outer, inner, -1)
        out.append(np.einsum("nc...k,mck->nm...", part, weight))
    return np.concatenate(out, 1)


def pool_counts(attrs, sizes, kernel, strides, dilations, pads):
    """Windows along each axis. With ceil_mode a last one may hang over, but none may begin in the
    padding at the end."""
    counts = []
    for k, n in enumerate(sizes):
        total = n + pads[k] + pads[k + len(sizes)] - dilations[k] * (kernel[k] - 1) - 1
        many = total // strides[k] + 1
        if attrs.get("ceil_mode"):
            many = -(-total // strides[k]) + 1
            if (many - 1) * strides[k] >= n + pads[k]:
                many -= 1
        counts.append(many)
    return counts


def pooled(x, attrs):
    """(values, inside, counted) of every window, taps along the last axis: whether a tap lies in the
    input, and whether it counts for a mean that includes the padding."""
    rank, kernel = x.ndim - 2, attrs["kernel_shape"]
    strides, dilations = (attrs.get(k, [1] * rank) for k in ("strides", "dilations"))
    pads = window_pads(attrs, x.shape[2:], kernel, strides, dilations)
    counts = pool_counts(attrs, x.shape[2:], kernel, strides, dilations, pads)
    extra = [s + d * k for s, d, k in zip(strides, dilations, kernel, strict=True)]
    shape = (*x.shape[:2], *counts, -1)
    inside = padded(np.ones(x.shape, bool), pads, False)
    counted = padded(np.ones(inside.shape, bool), [0] * (2 * rank), False, extra)
    return [taps(v, kernel, strides, dilations, counts).reshape(shape) for v in
            (padded(x, pads, 0, extra), padded(inside, [0] * (2 * rank), False, extra), counted)]


def max_pool(x, attrs):
    low = -np.inf if x.dtype.kind not in "iu" else np.iinfo(x.dtype).min
    values, inside, _ = pooled(x if x.dtype.kind in "iu" else double(x), attrs)
    return np.where(inside, values, low).max(-1)


def average_pool(x, attrs):
    values, inside, counted = pooled(double(x), attrs)
    return values.sum(-1) / (counted if attrs.get("count_include_pad") else inside).sum(-1)


def lp_pool(x, attrs, p):
    values, _, _ = pooled(double(x), attrs)
    return (np.abs(values) ** p).sum(-1) ** (1 / p)


# ---- quantization

def spread(scale, shape, axis, block):
    """A scale (or zero point) of one number, one per slice of `axis`, or one per block of it, as
    large as the input."""
    scale = double(scale)
    if scale.ndim == 0 or not shape:
        return np.broadcast_to(scale.reshape(-1)[0] if scale.size == 1 else scale, shape)
    if block:
        wide = np.repeat(scale, block, axis)
        return wide.take(range(shape[axis]), axis)
    if scale.ndim == 1:
        form = [1] * len(shape)
        form[axis] = scale.size
        return np.broadcast_to(scale.reshape(form), shape)
    return np.broadcast_to(scale, shape)


# ---- recurrences

def _hard(x, alpha=float(np.float32(0.2)), beta=0.5):
    return np.clip(alpha * x + beta, 0, 1)


FUNCTIONS = {"Sigmoid": lambda x: 1 / (1 + np.exp(-x)), "Tanh": np.tanh,
             "Relu": lambda x: np.maximum(x, 0), "HardSigmoid": _hard,
             "Elu": lambda x: np.where(x < 0, np.exp(x) - 1, x),
             "Softsign": lambda x: x / (1 + np.abs(x)),
             "Softplus": lambda x: np.log1p(np.exp(x)),
             "LeakyRelu": lambda x: np.where(x < 0, float(np.float32(0.01)) * x, x)}


def recurrent(name, attrs, X, W, R, B=None, lens=None, h0=None, c0=None, P=None):  # noqa: N803
    """RNN, GRU and LSTM: Y, Y_h (and Y_c), in either layout."""
    gates, each = {"RNN": (1, 1), "GRU": (3, 2), "LSTM": (4, 3)}[name]
    ways, hidden = W.shape[0], R.shape[2]
    first = attrs.get("layout", 0)
    X = double(X.swapaxes(0, 1) if first else X)  # noqa: N806
    steps, batch = X.shape[:2]
    usual = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}[name]
    names = attrs.get("activations", usual * ways)
    lens = np.full(batch, steps) if lens is None else lens

    def state(given, d):
        if given is None:
            return np.zeros((batch, hidden))
        return double(given[:, d] if first else given[d])
    Y, last = np.zeros((steps, ways, batch, hidden)), []  # noqa: N806
    for d in range(ways):
        act = [FUNCTIONS[n] for n in names[d * each:(d + 1) * each]]
        bias = np.zeros(2 * gates * hidden) if B is None else double(B[d])
        wb, rb = np.split(bias, 2)
        peep = np.zeros(3 * hidden) if P is None else double(P[d])
        h, c = state(h0, d), state(c0, d)
        back = d == 1 or attrs.get("direction", "forward") == "reverse"
        for i in range(steps):
            for b in range(batch):
                if i >= lens[b]:
                    continue
                t = int(lens[b]) - 1 - i if back else i
                x = X[t, b] @ double(W[d]).T + wb
                one = (x, h[b], c[b], double(R[d]), rb, peep, act, attrs)
                h[b], c[b] = {"RNN": rnn_step, "GRU": gru_step, "LSTM": lstm_step}[name](*one)
                Y[t, d, b] = h[b]
        last.append((h, c))
    out = [Y] + [np.stack([s[k] for s in last]) for k in range(2 if name == "LSTM" else 1)]
    return [out[0].transpose(2, 0, 1, 3)] + [v.swapaxes(0, 1) for v in out[1:]] if first else out


def clipped(x, attrs):
    return np.clip(x, -attrs["clip"], attrs["clip"]) if attrs.get("clip") else x


def rnn_step(x, h, c, R, rb, peep, act, attrs):  # noqa: N803
    return act[0](clipped(x + h @ R.T + rb, attrs)), c


def gru_step(x, h, c, R, rb, peep, act, attrs):  # noqa: N803
    n = h.size
    z, r = np.split(act[0](clipped(x[:2 * n] + h @ R[:2 * n].T + rb[:2 * n], attrs)), 2)
    if attrs.get("linear_before_reset"):
        new = x[2 * n:] + r * (h @ R[2 * n:].T + rb[2 * n:])
    else:
        new = x[2 * n:] + (r * h) @ R[2 * n:].T + rb[2 * n:]
    return (1 - z) * act[1](clipped(new, attrs)) + z * h, c


def lstm_step(x, h, c, R, rb, peep, act, attrs):  # noqa: N803
    i, o, f, new = np.split(x + h @ R.T + rb, 4)
    pi, po, pf = np.split(peep, 3)
    i = act[0](clipped(i + pi * c, attrs))
    f = 1 - i if attrs.get("input_forget") else act[0](clipped(f + pf * c, attrs))
    c = f * c + i * act[1](clipped(new, attrs))
    return act[0](clipped(o + po * c, attrs)) * act[2](c), c


# ---- rows

def softmax(x, axis, log=False):
    x = double(x)
    with np.errstate(all="ignore"):
        e = np.exp(x - x.max(axis, keepdims=True, initial=-np.inf))
        total = e.sum(axis, keepdims=True)
        return x - x.max(axis, keepdims=True, initial=-np.inf) - np.log(total) if log else e / total


def attention(attrs, heads, q, k, v,  # noqa: PLR0913
              mask=None, past_k=None, past_v=None, nonpad=None):
    """Attention of ONNX: (Y, present key, present value, what qk_matmul_output_mode asks for)."""
    flat, (q_heads, kv_heads) = q.ndim == 3, heads
    q, k, v = (double(x) for x in (q, k, v))
    if flat:
        q, k, v = (x.reshape(*x.shape[:2], h, -1).transpose(0, 2, 1, 3) for x, h in
                   ((q, q_heads), (k, kv_heads), (v, kv_heads)))
    past = 0 if past_k is None else past_k.shape[2]
    if past_k is not None:
        k, v = np.concatenate([double(past_k), k], 2), np.concatenate([double(past_v), v], 2)
    ratio, new, total = q.shape[1] // k.shape[1], q.shape[2], k.shape[2]
    wide_k, wide_v = np.repeat(k, ratio, 1), np.repeat(v, ratio, 1)
    raw = attrs.get("scale", 1 / math.sqrt(q.shape[-1])) * (q @ wide_k.swapaxes(2, 3))
    cap = attrs.get("softcap", 0.0)
    capped = cap * np.tanh(raw / cap) if cap else raw
    at = np.arange(new)[:, None] + past if nonpad is None else \
        np.arange(new)[:, None] + (nonpad[:, None, None, None] - new)
    key = np.arange(total)
    allowed = np.ones((1, 1, new, total), bool)
    if attrs.get("is_causal"):
        allowed = allowed & (key <= at)
    for side, sign in (("left_window_size", 1), ("right_window_size", -1)):
        if attrs.get(side, -1) >= 0:
            allowed = allowed & ((at - key) * sign <= attrs[side])
    if nonpad is not None:
        allowed = allowed & (key < nonpad[:, None, None, None])
    biased = capped
    if mask is not None:
        mask = np.pad(mask, [(0, 0)] * (mask.ndim - 1) + [(0, total - mask.shape[-1])],
                      constant_values=False if mask.dtype == bool else -np.inf)
        if mask.dtype == bool:
            allowed = allowed & mask
        else:
            biased = biased + double(mask)
    biased = np.where(allowed, biased, -np.inf)
    top = biased.max(-1, keepdims=True, initial=-np.inf)
    e = np.where(np.isfinite(top), np.exp(biased - np.where(np.isfinite(top), top, 0)), 0)
    sums = e.sum(-1, keepdims=True)
    p = np.divide(e, sums, out=np.zeros_like(e), where=sums != 0)
    y = p @ wide_v
    if flat:
        y = y.transpose(0, 2, 1, 3).reshape(y.shape[0], new, -1)
    return y, k, v, [raw, capped, biased, p][attrs.get("qk_matmul_output_mode", 0)]
