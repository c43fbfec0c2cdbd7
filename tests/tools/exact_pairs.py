"""exact_pairs.py - float operators between DequantizeLinear and QuantizeLinear beside 64-bit
integers, for exact_operators.py: convolutions and products of 16-bit codes by weights of bytes,
functions behind convolutions of bytes, recurrences of bytes.

Sums of codes are whole numbers here; what follows them is computed in double. A code must be the
one that this gives, or a neighbour where the number lies within the error of the operator's floats.
"""
import numpy as np
from onnx import helper

from exact_case import F32, KINDS, LIMITS, ONE_ROUNDING, conv_sums, draw_conv, operator, product, span


def coded(c, kind, codes, scale=None, zero=None):
    """Three inputs: (whole numbers less their zero point, scale), of all or along the first axis."""
    codes = c.give(codes, kind)
    scale = c.give(c.scale(low=-12, high=-4) if scale is None else scale)
    zero = c.give(c.zero(kind) if zero is None else zero, kind)
    if zero.ndim:
        zero = zero.reshape(-1, *(1,) * (codes.ndim - 1))
    return codes - zero, scale.astype(float)


def result_of(c, kind, real, error, most):
    """Codes of these numbers, whose float has this error; scale and zero point become inputs."""
    codes = LIMITS[kind][1] - LIMITS[kind][0]
    sy = c.scale(low=0, high=4) * F32(2.0 ** np.floor(np.log2(max(most, 1e-9) / codes)))
    sy = float(c.give(np.asarray(sy, F32)))
    zy = int(c.give(c.zero(kind), kind))
    error = 0 if c.exact else error / sy + 2 * ONE_ROUNDING * (np.abs(real / sy) + 1)
    c.outputs.append((KINDS[kind], *(np.clip(np.rint(real / sy + e) + zy, *LIMITS[kind])
                                     for e in (-error, error))))


class Nodes:
    """Nodes of a small graph over the inputs that were given, three for each tensor of codes."""

    def __init__(self, names):
        self.names, self.list = names, []

    def op(self, op_type, inputs, outputs=None, **attributes):
        outputs = outputs or [f"t{len(self.list)}"]
        self.list.append(helper.make_node(op_type, inputs, outputs, **attributes))
        return outputs[0]

    def real(self, first, **attributes):
        """The numbers of the codes that are inputs `first` to `first` + 2."""
        return self.op("DequantizeLinear", self.names[first:first + 3], **attributes)


# ---- convolutions

def sigmoid(v):
    return 1 / (1 + np.exp(-np.clip(v, -700, 700)))


FUNCTIONS = {"Relu": lambda v: np.maximum(v, 0),
             "HardSwish": lambda v: v * np.clip(v / 6 + 0.5, 0, 1), "Sigmoid": sigmoid,
             "LeakyRelu": lambda v: np.where(v < 0, float(F32(0.01)) * v, v),
             "Mish": lambda v: v * np.tanh(np.logaddexp(0, v))}


def draw_pair_conv(c, kinds, function, kx):
    """Inputs x, w, bias (three each), then those of the result; the numbers of the convolution."""
    x_shape, w_shape = draw_conv(c)
    kw = c.kind()
    if "16" in kx and c.attributes["group"] < 3 and c.rng.random() < 0.3:  # more than int32 holds
        channels = c.pick([90, 301])
        x_shape = (x_shape[0], channels * c.attributes["group"], *x_shape[2:])
        w_shape = (w_shape[0], channels, *w_shape[2:])
    codes, weights = c.codes(kx, *x_shape), c.codes(kw, *w_shape)
    if c.rng.random() < 0.3:  # all of one sign
        codes = np.full(x_shape, c.pick(LIMITS[kx]))
        weights = np.full(w_shape, c.pick(LIMITS[kw]))
    zx = c.zero(kx)
    if c.rng.random() < 0.3:  # sums that floats hold
        codes = np.clip(zx + c.rng.integers(-90, 91, x_shape), *LIMITS[kx])
    many = w_shape[:1] if c.rng.random() < 0.5 else ()
    x, sx = coded(c, kx, codes, None, zx)
    w, sw = coded(c, kw, weights, c.scale(*many),
                  c.zero(kw, *many) if kw == "uint8" else np.zeros(many, int))
    bias = c.give(c.rng.integers(-99999, 99999, w_shape[:1]).astype(np.int32)).astype(np.int64)
    sb = c.give((float(sx) * np.broadcast_to(sw, w_shape[:1])).astype(F32))
    sums = conv_sums(c, x, 0, w, 0)
    row = (-1,) + (1,) * (len(x_shape) - 2)
    shift = bias.reshape(row) * sb.astype(float).reshape(row)
    span(c, sums + bias.reshape(row))
    real = sums * float(sx) * np.reshape(sw, row) + shift
    c.exact = c.exact and function in (None, "Relu")
    c.per_tier = function not in (None, "Relu")
    error = 0 if c.exact else 3 * ONE_ROUNDING * (np.abs(real) + np.abs(shift))
    if function:
        real = FUNCTIONS[function](real)
        error = error * 1.2 + (0 if c.exact else 1e-6 * (1 + np.abs(real)))
    result_of(c, c.pick(kinds), real, error, np.abs(real).max(initial=0))
    at, rank = dict(c.attributes), len(x_shape) - 2

    def nodes(names, outputs):
        n = Nodes(names)
        b = n.op("DequantizeLinear", [names[6], names[7]], axis=0)
        y = n.op("Conv", [n.real(0), n.real(3, axis=0) if many else n.real(3), b], **at)
        y = n.op(function, [y]) if function else y
        n.op("QuantizeLinear", [y, *names[8:10]], outputs)
        return n.list
    c.nodes, c.attributes = nodes, {"function": function or "", "rank": rank, **at}


@operator("Conv of 16 bits")
def wide_conv(c):
    draw_pair_conv(c, ["int16", "uint16", "int16", "uint16", "int8", "uint8"],
                   c.pick([None, None, "Relu", "HardSwish"]), c.pick(["int16", "uint16"]))


@operator("Conv and a function")
def conv_function(c):
    """Exact sums, then a function whose float bits are a tier's own."""
    draw_pair_conv(c, ["int8", "uint8"], c.pick(["LeakyRelu", "HardSwish", "Sigmoid", "Mish"]),
                   c.kind())


@operator("GlobalAveragePool of 16 bits")
def wide_mean(c):
    kx = c.pick(["int16", "uint16"])
    x, sx = coded(c, kx, c.codes(kx, c.size(3), c.size(20), *(c.size(12) for _ in range(c.pick([1, 2, 2, 3])))))
    count = int(np.prod(x.shape[2:]))
    sums = x.sum(axis=tuple(range(2, x.ndim)), keepdims=True)
    span(c, sums)
    c.exact = c.exact and count & (count - 1) == 0
    real = sums * float(sx) / count
    result_of(c, kx, real, 0 if c.exact else 4 * ONE_ROUNDING * np.abs(real), np.abs(real).max(initial=0))

    def nodes(names, outputs):
        n = Nodes(names)
        n.op("QuantizeLinear", [n.op("GlobalAveragePool", [n.real(0)]), *names[3:5]], outputs)
        return n.list
    c.nodes = nodes


# ---- products

@operator("MatMul of 16 bits")
def wide_matmul(c):
    rows, depth, columns = c.size(70), c.size(900), c.size(70)
    lead = c.pick([(), (2,), (2, 3)])
    kx, kw = c.pick(["int16", "uint16"]), c.kind()
    x, sx = coded(c, kx, c.codes(kx, *lead, rows, depth))
    w, sw = coded(c, kw, c.codes(kw, depth, columns))
    sums = product(x, 0, w, 0)
    span(c, sums)
    real = sums * float(sx) * float(sw)
    error = 0 if c.exact else 2 * ONE_ROUNDING * np.abs(real)
    result_of(c, kx, real, error, np.abs(real).max(initial=0))

    def nodes(names, outputs):
        n = Nodes(names)
        y = n.op("MatMul", [n.real(0), n.real(3)])
        n.op("QuantizeLinear", [y, *names[6:8]], outputs)
        return n.list
    c.nodes = nodes


# ---- recurrences

def lstm_step(xw, r, bias, h, cell, after):
    i, o, f, g = np.split(xw + h @ r.T + bias[0] + bias[1], 4, 1)
    cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(cell), cell


def gru_step(xw, r, bias, h, cell, after):
    (xz, xr, xh), (hz, hr, hh) = np.split(xw + bias[0], 3, 1), np.split(h @ r.T + bias[1], 3, 1)
    z, reset = sigmoid(xz + hz), sigmoid(xr + hr)
    if not after:
        width = h.shape[1]
        hh = (reset * h) @ r[2 * width:].T + bias[1][2 * width:]
        new = np.tanh(xh + hh)
    else:
        new = np.tanh(xh + reset * hh)
    return (1 - z) * new + z * h, cell


def rnn_step(xw, r, bias, h, cell, after):
    return np.tanh(xw + h @ r.T + bias[0] + bias[1]), cell


STEPS = {"LSTM": (4, lstm_step), "GRU": (3, gru_step), "RNN": (1, rnn_step)}


def weights_of(c, kind, ways, rows, depth):
    """Codes, scale and zero point: of all, or of each row."""
    codes, many = c.give(c.codes(kind, ways, rows, depth), kind), c.pick([(), (rows,)])
    scale = c.give((c.rng.uniform(0.5, 1.5, many) / (128 * depth ** 0.5)).astype(F32))
    zero = c.give(c.zero(kind, *many), kind)
    spread = (lambda v: np.reshape(v, (1, -1, 1))) if many else (lambda v: v)
    return (codes - spread(zero)) * spread(scale.astype(float)), {"axis": 1} if many else {}


@operator("LSTM between pairs", "GRU between pairs", "RNN between pairs")
def recurrence(c):
    """W x is exact where x is codes; states and what is made of them are floats."""
    op_type = c.name.split()[0]
    gates, step = STEPS[op_type]
    steps, rows, width, hidden = c.pick([1, 2, 6]), c.size(20), c.size(40), c.size(40)
    way = c.pick(["forward", "reverse", "bidirectional"])
    ways = 2 if way == "bidirectional" else 1
    at = {"hidden_size": hidden, "direction": way}
    after = op_type == "GRU" and c.rng.random() < 0.5
    if after:
        at["linear_before_reset"] = 1
    kx, kw = c.kind(), c.kind()
    x, sx = coded(c, kx, c.codes(kx, steps, rows, width), c.scale(low=-7, high=-5))
    w, of_w = weights_of(c, kw, ways, gates * hidden, width)
    r, of_r = weights_of(c, kw, ways, gates * hidden, hidden)
    bias = c.give((c.rng.standard_normal((ways, 2 * gates * hidden)) / 2).astype(F32)).astype(float)
    y = np.zeros((steps, ways, rows, hidden))
    for d in range(ways):
        h = cell = np.zeros((rows, hidden))
        order = range(steps)[::-1] if way == "reverse" or d else range(steps)
        both = np.split(bias[d], 2)
        for t in order:
            h, cell = step(x[t] * float(sx) @ w[d].T, r[d], both, h, cell, after)
            y[t, d] = h
    c.exact, c.per_tier, c.attributes = False, True, at
    result_of(c, c.kind(), y, 2e-5, 1.0)

    def nodes(names, outputs):
        n = Nodes(names)
        out = n.op(op_type, [n.real(0), n.real(3, **of_w), n.real(6, **of_r), names[9]], **at)
        n.op("QuantizeLinear", [out, *names[10:12]], outputs)
        return n.list
    c.nodes = nodes
