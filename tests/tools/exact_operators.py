#!/usr/bin/env python3
"""exact_operators.py - operators on integers beside their specification in 64-bit integers.

usage: exact_operators.py [--seed N] [--cases N] [OPERATOR...]

Random shapes, attributes, zero points and scales, one value or one per channel, weights that are
constants or not; elements over their whole range, or its two ends alone, where 16-bit sums saturate.
Each case runs on every kernel tier of this machine with 1 and 2 threads: all give the same bits.

Sums are computed in 64-bit integers here, and what is rounded to codes in double. A code must be the
one that rounding to even gives; where the number lies within the float error of a half, either of its
neighbours. With scales that are powers of two nothing but the specification is left: halves go to
even. Types of QuantizeLinear and DequantizeLinear go down to 2 bits, by tensor, axis and blocks.
Float operators between the two, as files have them, stand in exact_pairs.py.

Closes with "N passed, N failed, N skipped". Needs the packages of tests/requirements.txt.
"""
import argparse
import os
import pathlib
import sys
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "fuzz"))
import numpy as np  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402
from ops import ours  # noqa: E402

import exact_pairs  # noqa: E402, F401: its operators
from exact_case import (F32, KINDS, LIMITS, MS, ONE_ROUNDING, OPERATORS, Case,  # noqa: E402
                        conv_sums, draw_conv, dynamic_codes, operator, product, span)

TIERS = ("scalar", "avx2", "avxvnni", "avx512", "vnni", "amx")


# ---- products

def batched(c, depth):
    rows, columns = c.size(70), c.size(70)
    lead = c.pick([(), (), (2,), (3, 2), (2, 9)])
    other = lead if c.rng.random() < 0.4 else () if c.rng.random() < 0.7 else (1,) * len(lead)
    return (*lead, rows, depth), (*other, depth, columns)


@operator("MatMulInteger")
def matmul_integer(c):
    c.opset = 10
    a_shape, b_shape = batched(c, c.size(300))
    ka, kb = c.kind(), c.kind()
    a, b = c.give(c.codes(ka, *a_shape), ka), c.give(c.codes(kb, *b_shape), kb)
    za = c.give(c.zero(ka), ka) if c.rng.random() < 0.8 else c.give(None)
    by_column = len(b_shape) == 2 and c.rng.random() < 0.5
    zb = c.give(c.zero(kb, *b_shape[-1:] if by_column else ()), kb) if c.rng.random() < 0.8 else None
    c.equals(product(a, 0 if za is None else za, b, 0 if zb is None else zb).astype(np.int32))


@operator("QLinearMatMul")
def qlinear_matmul(c):
    a_shape, b_shape = batched(c, c.size(300))
    ka, kb, ky = c.kind(), c.kind(), c.kind()
    by_column = len(b_shape) == 2 and c.rng.random() < 0.5
    many = b_shape[-1:] if by_column else ()
    a, sa, za = c.give(c.codes(ka, *a_shape), ka), c.give(c.scale()), c.give(c.zero(ka), ka)
    b, sb = c.give(c.codes(kb, *b_shape), kb), c.give(c.scale(*many))
    zb = c.give(c.zero(kb, *many), kb)
    sy, zy = c.give(c.scale(low=0, high=6)), c.give(c.zero(ky), ky)
    sums = product(a, za, b, zb)
    span(c, sums)
    c.rounded(sums * sa.astype(float) * sb / float(sy), ky, zy)


@operator("QGemm", domain=MS)
def qgemm(c):
    m, k, n = c.size(70), c.size(300), c.size(70)
    ka, kb, ky = c.kind(), c.kind(), c.kind()
    c.attributes = {"transA": c.pick([0, 1]), "transB": c.pick([0, 1])}
    ta, tb = c.attributes["transA"], c.attributes["transB"]
    a, sa = c.give(c.codes(ka, *((k, m) if ta else (m, k))), ka), c.give(c.scale())
    za, b = c.give(c.zero(ka), ka), c.give(c.codes(kb, *((n, k) if tb else (k, n))), kb)
    many = (n,) if c.rng.random() < 0.5 else ()
    sb, zb = c.give(c.scale(*many)), c.give(c.zero(kb, *many), kb)
    bias = c.rng.integers(-99999, 99999, n).astype(np.int32)
    bias = c.give(bias if c.rng.random() < 0.7 else None)
    sy, zy = c.give(c.scale(low=0, high=6)), c.give(c.zero(ky), ky)
    b = b.T if tb else b
    sums = product(a.T if ta else a, za, b, zb) + (0 if bias is None else bias.astype(np.int64))
    span(c, sums)
    c.rounded(sums * float(sa) * sb.astype(float) / float(sy), ky, zy)


@operator("DynamicQuantizeMatMul", "MatMulIntegerToFloat", domain=MS)
def scaled_product(c):
    """The sums scaled, and a bias: each rounded once or twice."""
    m, k, n = c.size(70), c.size(300), c.size(70)
    kb = c.kind()
    many = (n,) if c.rng.random() < 0.5 else ()
    dynamic = c.name == "DynamicQuantizeMatMul"
    if dynamic:
        a, sa = dynamic_codes(c.give((c.rng.standard_normal((m, k)) * 3).astype(F32)))
    else:
        ka = c.kind()
        a = c.give(c.codes(ka, m, k), ka)
    b = c.give(c.codes(kb, k, n), kb)
    if not dynamic:
        sa = float(c.give(c.scale()))
    sb = c.give(c.scale(*many))
    if not dynamic:
        a = a - c.give(c.zero(ka), ka)
    zb = c.give(c.zero(kb, *many), kb)
    bias = c.give(c.rng.standard_normal(n).astype(F32) if c.rng.random() < 0.5 else None)
    bias = 0.0 if bias is None else bias.astype(float)
    scaled = product(a, 0, b, zb) * sa * sb.astype(float)
    c.near(scaled + bias, 6 * ONE_ROUNDING * (np.abs(scaled) + np.abs(bias)))


CHUNK = 8  # rows of the batch whose state has one range


def lstm_direction(x, w, r, bias, h, cell):
    """(states of all steps, last cell, largest step of a state's codes); w, r: (numbers, scale)."""
    def sigmoid(v):
        return 1 / (1 + np.exp(-v))
    out, largest = [], 0.0
    codes, scale = x
    for step in codes:
        rows = [dynamic_codes(h[k:k + CHUNK].astype(F32)) for k in range(0, len(h), CHUNK)]
        largest = max(largest, *(s for _, s in rows))
        gates = step @ w[0] * (scale * w[1]) + bias
        gates = gates + np.concatenate([q @ r[0] * (s * r[1]) for q, s in rows])
        i, o, f, g = np.split(gates, 4, 1)
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(cell)
        out.append(h)
    return np.stack(out), cell, largest


@operator("DynamicQuantizeLSTM", domain=MS)
def lstm(c):
    """X is quantized as a whole, and the state at each step. What lies between the exact sums is
    float: from the second step on a state near a half may be the next code."""
    steps, rows, width, hidden = c.pick([1, 1, 2, 6]), c.size(20), c.size(40), c.size(40)
    way = c.pick(["forward", "reverse", "bidirectional"])
    ways = 2 if way == "bidirectional" else 1
    c.attributes = {"hidden_size": hidden, "direction": way}
    kind, many = c.kind(), (ways, 4 * hidden) if c.rng.random() < 0.5 else (ways,)
    x = c.give(c.rng.standard_normal((steps, rows, width)).astype(F32))
    w = c.give(c.codes(kind, ways, width, 4 * hidden), kind)
    r = c.give(c.codes(kind, ways, hidden, 4 * hidden), kind)
    bias = c.give((c.rng.standard_normal((ways, 8 * hidden)) / 2).astype(F32)
                  if c.rng.random() < 0.7 else None)
    c.give(None)
    states = [c.give(c.rng.uniform(-1, 1, (ways, rows, hidden)).astype(F32)
                     if c.rng.random() < 0.6 else None) for _ in range(2)]
    c.give(None)
    numbers = []
    for codes, depth in ((w, width), (r, hidden)):
        scale = c.give((c.rng.uniform(0.5, 1.5, many) / (128 * depth ** 0.5)).astype(F32))
        zero = c.give(c.zero(kind, *many), kind)
        one = (ways, 1, -1)
        numbers.append((codes - zero.reshape(one), scale.astype(float).reshape(one)))
    h0, c0 = (np.zeros((ways, rows, hidden)) if s is None else s.astype(float) for s in states)
    bias = np.zeros((ways, 8 * hidden)) if bias is None else bias.astype(float)
    bias = bias[:, :4 * hidden] + bias[:, 4 * hidden:]
    codes, scale = dynamic_codes(x)
    y, cells, step = np.zeros((steps, ways, rows, hidden)), [], 0.0
    for d in range(ways):
        order = slice(None, None, -1 if way == "reverse" or d else 1)
        (w, sw), (r, sr) = numbers
        out, cell, own = lstm_direction((codes[order], scale), (w[d], sw[d]), (r[d], sr[d]), bias[d],
                                        h0[d], c0[d])
        y[order, d], step = out, max(step, own)
        cells.append(cell)
    last = np.stack([y[0 if way == "reverse" or d else -1, d] for d in range(ways)])
    error = 1e-5 + (step if steps > 1 else 0.0)
    for part in (y, last, np.stack(cells)):
        c.near(part, error)


@operator("ConvInteger")
def conv_integer(c):
    c.opset = 10
    x_shape, w_shape = draw_conv(c)
    kx, kw = c.kind(), c.kind()
    x, w = c.give(c.codes(kx, *x_shape), kx), c.give(c.codes(kw, *w_shape), kw)
    zx = c.give(c.zero(kx), kx)
    zw = c.give(c.zero(kw, *w_shape[:1] if c.rng.random() < 0.5 else ()), kw)
    c.equals(conv_sums(c, x, zx, w, zw).astype(np.int32))


@operator("QLinearConv")
def qlinear_conv(c):
    x_shape, w_shape = draw_conv(c)
    kx, kw, ky = c.kind(), c.kind(), c.kind()
    many = w_shape[:1] if c.rng.random() < 0.5 else ()
    x, sx, zx = c.give(c.codes(kx, *x_shape), kx), c.give(c.scale()), c.give(c.zero(kx), kx)
    far = c.rng.random() < 0.15  # as far from the zero point as codes go
    codes = np.full(w_shape, LIMITS[kw][1]) if far else c.codes(kw, *w_shape)
    w, sw = c.give(codes, kw), c.give(c.scale(*many))
    zw = c.give(np.full(many, LIMITS[kw][0]) if far else
                np.zeros(many, int) if c.rng.random() < 0.6 and kw == "int8" else
                c.zero(kw, *many), kw)
    sy, zy = c.give(c.scale(low=0, high=6)), c.give(c.zero(ky), ky)
    sums = conv_sums(c, x, zx, w, zw)
    if c.rng.random() < 0.7:
        bias = c.give(c.rng.integers(-99999, 99999, w_shape[:1]).astype(np.int32))
        sums = sums + bias.astype(np.int64).reshape(-1, *(1,) * (len(x_shape) - 2))
    span(c, sums)
    per_map = np.reshape(sw.astype(float), (-1,) + (1,) * (len(x_shape) - 2))
    c.rounded(sums * float(sx) * per_map / float(sy), ky, zy)


# ---- between products

def quantized(c, kind, *shape):
    """(numbers in double, scale, zero point) of an input of codes."""
    codes, scale, zero = (c.give(c.codes(kind, *shape), kind), c.give(c.scale()),
                          c.give(c.zero(kind), kind))
    return (codes - zero) * float(scale), float(scale), zero


def result(c, kind, low=-7, high=1):
    return float(c.give(c.scale(low=low, high=high))), int(c.give(c.zero(kind), kind))


@operator("QLinearAdd", "QLinearMul", domain=MS)
def binary(c):
    kind = c.kind()
    full = [c.size(60) for _ in range(c.pick([1, 2, 3]))]
    other = [d if c.rng.random() < 0.7 else 1 for d in full][int(c.rng.integers(len(full))):]
    shapes = (full, other) if c.rng.random() < 0.5 else (other, full)
    (a, sa, za), (b, sb, zb) = (quantized(c, kind, *s) for s in shapes)
    sy, zy = result(c, kind)
    # com.microsoft's round the sum with the zero point: halves go to even codes
    real = (a * b if c.name == "QLinearMul" else a + b) / sy + zy
    # and form it ratio by ratio: the error is that of the summands
    most = (abs(LIMITS[kind][0]) + 255) * (sa + sb) / sy if c.name == "QLinearAdd" else 0
    error = 4 * ONE_ROUNDING * (np.abs(real) + most + 256)
    error = 0 if c.exact and most < 1 << 20 else error
    c.outputs.append((KINDS[kind], *(np.clip(np.rint(real + e), *LIMITS[kind])
                                     for e in (-error, error))))


@operator("QLinearLeakyRelu", "QLinearSigmoid", domain=MS)
def unary(c):
    kind = c.kind()
    x, _, _ = quantized(c, kind, c.size(9), c.size(300))
    sy, zy = result(c, kind)
    c.exact = False
    if c.name == "QLinearSigmoid":
        c.rounded(1 / (1 + np.exp(-x)) / sy, kind, zy, 16)
    else:
        c.attributes["alpha"] = alpha = float(c.rng.uniform(0, 1))
        c.rounded(np.where(x < 0, x * float(F32(alpha)), x) / sy, kind, zy, 8)


@operator("QLinearSoftmax", domain=MS)
def softmax(c):
    """Exponentials are whole numbers: a hundredth of a code is allowed beside rounding."""
    kind = c.kind()
    shape = [c.size(9), c.size(9), c.size(300)]
    axis = c.pick([0, 1, 2])
    c.attributes = {"axis": axis, "opset": 13}
    x, _, _ = quantized(c, kind, *shape)
    sy, zy = F32(2.0 ** -8), 0 if kind == "uint8" else -128
    c.give(sy)
    c.give(np.int64(zy), kind)
    e = np.exp(x - x.max(axis, keepdims=True))
    real, (low, high) = e / e.sum(axis, keepdims=True) * 256, LIMITS[kind]
    c.outputs.append((KINDS[kind], *(np.clip(np.rint(real + d) + zy, low, high)
                                     for d in (-0.01, 0.01))))


@operator("QLinearConcat", domain=MS)
def concat(c):
    kind, shape = c.kind(), [c.size(9), c.size(9), c.size(40)]
    c.attributes = {"axis": c.pick([0, 1, 2])}
    sy, zy = result(c, kind)
    parts = []
    for _ in range(c.pick([1, 2, 3])):
        shape[c.attributes["axis"]] = c.size(40)
        parts.append(quantized(c, kind, *shape)[0] / sy)
    c.rounded(np.concatenate(parts, c.attributes["axis"]), kind, zy)


@operator("QLinearGlobalAveragePool", domain=MS)
def global_mean(c):
    kind = c.kind()
    x, _, _ = quantized(c, kind, c.size(3), c.size(40), c.size(20), c.size(20))
    sy, zy = result(c, kind)
    c.exact = False
    c.rounded(x.mean((2, 3), keepdims=True) / sy, kind, zy, 8)


@operator("QLinearAveragePool", domain=MS)
def mean(c):
    kind = c.kind()
    kernel, strides = [c.size(4), c.size(4)], [c.pick([1, 2]), c.pick([1, 2])]
    pads = [int(c.rng.integers(0, k)) for k in kernel * 2]
    shape = [c.size(3), c.size(20), kernel[0] + c.size(12), kernel[1] + c.size(12)]
    c.attributes = {"kernel_shape": kernel, "strides": strides, "pads": pads,
                    "count_include_pad": c.pick([0, 1])}
    x, _, _ = quantized(c, kind, *shape)
    sy, zy = result(c, kind)
    around = [(0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])]

    def sums(v):
        win = np.lib.stride_tricks.sliding_window_view(np.pad(v, around), kernel, (2, 3))
        return win[:, :, ::strides[0], ::strides[1]].sum((4, 5))
    count = kernel[0] * kernel[1] if c.attributes["count_include_pad"] else sums(np.ones_like(x))
    c.exact = False
    c.rounded(sums(x) / count / sy, kind, zy, 8)


# ---- codes and numbers

def granularity(c, shape):
    """(shape of scales, function that spreads them over the tensor); attributes are set."""
    axis = int(c.rng.integers(len(shape)))
    how = c.pick(["tensor", "axis", "blocks"])
    if how == "tensor":
        return (), lambda s: s
    c.attributes["axis"] = axis
    if how == "axis":
        one = [1] * len(shape)
        one[axis] = shape[axis]
        return (shape[axis],), lambda s: np.reshape(s, one)
    block = c.size(8)
    c.attributes["block_size"] = block
    many = list(shape)
    many[axis] = -(-shape[axis] // block)
    return tuple(many), lambda s: np.repeat(s, block, axis).take(range(shape[axis]), axis)


@operator("QuantizeLinear")
def quantize(c):
    kind, shape = c.pick(list(KINDS)), [c.size(9), c.size(9), c.size(60)]
    c.opset = 25 if "2" in kind else 21
    many, spread = granularity(c, shape)
    scale = c.scale(*many, low=-6, high=3)
    reach = max(abs(n) for n in LIMITS[kind]) * 1.3
    x = c.rng.uniform(-reach, reach, shape).astype(F32)
    if c.rng.random() < 0.5:
        x = np.rint(2 * x) / 2  # halves
    x = (x * spread(scale)).astype(F32)
    c.give(x)
    c.give(scale)
    zero = c.give(c.zero(kind, *many), kind)
    low, high = LIMITS[kind]
    codes = np.clip(np.rint(x / spread(scale)).astype(np.float64) + spread(zero), low, high)
    c.equals(codes.astype(KINDS[kind]))


@operator("DequantizeLinear")
def dequantize(c):
    kind, shape = c.pick(list(KINDS)), [c.size(9), c.size(9), c.size(60)]
    c.opset = 25 if "2" in kind else 21
    many, spread = granularity(c, shape)
    x, scale = c.give(c.codes(kind, *shape), kind), c.give(c.scale(*many, low=-6, high=3))
    zero = c.give(c.zero(kind, *many), kind)
    c.equals((x - spread(zero)).astype(F32) * spread(scale))


@operator("DynamicQuantizeLinear")
def dynamic_quantize(c):
    x = c.give((c.rng.standard_normal((c.size(9), c.size(3000))) *
                10.0 ** c.pick([-3, 0, 3]) + c.pick([0, 0, 5, -5])).astype(F32))
    low, high = min(x.min(), F32(0)), max(x.max(), F32(0))
    scale = F32(high - low) / F32(255)
    zero = np.uint8(np.clip(np.rint(F32(0) - low / scale), 0, 255))
    y = np.clip(np.rint(x / scale).astype(np.float64) + zero, 0, 255).astype(np.uint8)
    for part in (y, scale, zero):
        c.equals(np.asarray(part))


# ---- running

def model_of(c):
    """(bytes, values that are fed): other inputs are constants."""
    names = [f"i{k}" if v is not None else "" for k, v in enumerate(c.inputs)]
    data = {"QLinearConcat": range(2, 99, 3), "QLinearAdd": (0, 3), "QLinearMul": (0, 3),
            "DynamicQuantizeMatMul": (0,), "MatMulIntegerToFloat": (0,),
            "DynamicQuantizeLSTM": (0, 5, 6)}
    fed = (0,) if c.nodes else data.get(c.name, (0, 0 if c.rng.random() < 0.6 else 1 if "Integer" in c.name else 3))
    tensors = {n: numpy_helper.from_array(np.asarray(v), n)
               for n, v in zip(names, c.inputs, strict=True) if n}
    given = [n for k, n in enumerate(names) if n and k in fed and c.inputs[k].ndim]
    outputs = [f"o{k}" for k in range(len(c.outputs))]
    nodes = (c.nodes(names, outputs) if c.nodes else
             [helper.make_node(c.name, names, outputs, domain=c.domain, **c.attributes)])
    graph = helper.make_graph(
        nodes, "exact",
        [helper.make_tensor_value_info(n, tensors[n].data_type, tensors[n].dims) for n in given],
        [helper.make_tensor_value_info(o, helper.np_dtype_to_tensor_dtype(np.dtype(w[0])), None)
         for o, w in zip(outputs, c.outputs, strict=True)],
        [t for n, t in tensors.items() if n not in given])
    imports = [helper.make_opsetid("", c.opset)]
    imports += [helper.make_opsetid(c.domain, 1)] if c.domain else []
    model = helper.make_model(graph, opset_imports=imports, ir_version=10)
    return model.SerializeToString(), [np.asarray(c.inputs[int(n[1:])]) for n in given]


def fault(c, got):
    for k, (g, (dtype, low, high)) in enumerate(zip(got, c.outputs, strict=True)):
        g64 = np.asarray(g).astype(np.float64)
        low, high = (np.asarray(e).astype(np.float64) for e in (low, high))
        if np.dtype(g.dtype) != np.dtype(dtype) or g64.shape != low.shape:
            return f"output {k} is {g.dtype}{list(g64.shape)}"
        bad = ~((g64 >= low) & (g64 <= high))  # NaN is wrong, too
        if bad.any():
            at = tuple(int(i) for i in np.argwhere(bad)[0])
            return (f"output {k}: {bad.sum()} of {bad.size} are wrong, at {at} {g64[at]:g}, "
                    f"needs {low[at]:g}" + (f" or {high[at]:g}" if high[at] != low[at] else ""))
    return None


def run_case(runtimes, name, seed, index):
    """What is wrong, or None."""
    domain, draw = OPERATORS[name]
    c = Case(np.random.default_rng([seed, zlib.crc32(name.encode()), index]))
    c.name, c.domain = name, domain
    draw(c)
    data, fed = model_of(c)
    first = None
    for label, runtime in runtimes.items():
        got = runtime.run(data, fed)
        why = fault(c, got)
        bits = [(np.asarray(g).dtype, np.asarray(g).tobytes()) for g in got]
        first = bits if first is None or (c.per_tier and label.endswith(" 1 threads")) else first
        if not why and bits != first:
            why = "other bits than the first tier's"
        if why:
            return f"{label}: {why}; {c.attributes}"
    return None


def open_runtimes():
    runtimes = {}
    for tier in TIERS:
        os.environ["ORT_ISA"] = tier
        for threads in (1, 2):
            try:
                runtimes[f"{tier}, {threads} threads"] = ours.Runtime(threads)
            except ours.OrtError:
                print(f"skip {tier}: this machine hasn't it")
                break
    return runtimes


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=30)
    parser.add_argument("operators", nargs="*", metavar="OPERATOR")
    options = parser.parse_args()
    runtimes = open_runtimes()
    passed = failed = 0
    for name in options.operators or OPERATORS:
        for index in range(options.cases):
            why = run_case(runtimes, name, options.seed, index)
            passed, failed = passed + (why is None), failed + (why is not None)
            if why:
                print(f"not ok {name} {index}: {why}", flush=True)
    print(f"{passed} passed, {failed} failed, {2 * len(TIERS) - len(runtimes)} skipped")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
