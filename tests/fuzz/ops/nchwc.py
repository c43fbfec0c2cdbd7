"""nchwc.py - com.microsoft.nchwc: tensors whose channels lie in blocks, [N, C/B, H, W, B] in memory
under the shape [N, C, H, W].

A file doesn't name its block: both sides take that of the machine, 16 with AVX-512 and else 8.
onnxruntime runs these nodes as they are, so it is the peer of each.
"""
import pathlib

import numpy as np

from . import bounds, formulas
from .case import Redraw, Tolerance, op
from .linear import fits, window, window_attrs
from .ms_attention import feed, small
from .schemas import NCHWC

F32 = np.dtype(np.float32)
CPU = pathlib.Path("/proc/cpuinfo")
BLOCK = 16 if CPU.exists() and "avx512f" in CPU.read_text() else 8
ACTIVATIONS = [None, None, ("Relu", []), ("LeakyRelu", [0.25]), ("Clip", [-0.5, 1.5]),
               ("HardSigmoid", [0.3, 0.4])]


def in_planes(x, f):
    """f over [N, C, H, W] whose memory is that of [N, C/B, H, W, B]."""
    n, c, h, w = x.shape
    plane = x.reshape(n, c // BLOCK, h, w, BLOCK).transpose(0, 1, 4, 2, 3).reshape(n, c, h, w)
    y = f(plane)
    h, w = y.shape[2:]
    return y.reshape(n, c // BLOCK, BLOCK, h, w).transpose(0, 1, 3, 4, 2).reshape(n, c, h, w)


def blocked(g, special=False):
    g.types["T"] = "tensor(float)"
    shape = (g.int(1, 2), BLOCK * g.int(1, 2), g.int(1, 7), g.int(1, 7))
    return g.values(F32, shape, special=special)


@op("ReorderInput", domain=NCHWC)
def reorder_input(g):
    g.types["T"] = "tensor(float)"
    last = g.chance()
    if last:
        g.attrs["channels_last"] = 1
    channels = g.pick([4, 8, BLOCK, BLOCK + 4, 2 * BLOCK])
    space = (g.int(1, 5), g.int(1, 5))
    g.input(g.values(F32, (g.int(1, 2), *space, channels) if last else
                     (g.int(1, 2), channels, *space)))


@op("ReorderOutput", domain=NCHWC)
def reorder_output(g):
    x = g.input(blocked(g, True))
    g.attrs["channels"] = g.int(x.shape[1] - BLOCK + 1, x.shape[1])
    g.attr("channels_last", [0, 1])


@op("Conv", domain=NCHWC)
def conv(g):
    g.types["T"] = "tensor(float)"
    kernel, strides, dilations, pads, sizes = window(g, 2)
    if not window_attrs(g, kernel, strides, dilations, pads, 1) and \
            not fits(sizes, kernel, dilations):
        raise Redraw
    form = g.pick(["blocks", "blocks", "depthwise", "image"])
    maps = BLOCK * g.int(1, 2)
    channels = {"blocks": BLOCK * g.int(1, 2), "depthwise": maps, "image": g.int(1, 3)}[form]
    inner = 1 if form == "depthwise" else channels
    g.attrs["group"] = maps if form == "depthwise" else 1
    chosen = g.pick(ACTIVATIONS)
    if chosen:
        g.attrs["activation"] = chosen[0]
        if chosen[1]:
            g.attrs["activation_params"] = chosen[1]
    batch = g.int(1, 2)
    x, w = small(g, F32, batch, channels, *sizes), small(g, F32, maps, inner, *kernel)
    b = small(g, F32, maps) if g.chance() else None
    total = None
    if g.chance(0.3) and "auto_pad" not in g.attrs:
        given = g.attrs.get("pads", [0] * 4)
        out = [(sizes[k] + given[k] + given[k + 2] - dilations[k] * (kernel[k] - 1) - 1) //
               strides[k] + 1 for k in range(2)]
        total = small(g, F32, batch, maps, *out)
    feed(g, x, w, b, total, fixed=(1, 2))
    g.tolerance = Tolerance(ulps=4, scale=bounds.dot(
        inner * int(np.prod(kernel)) + 2, x, w, extra=bounds.most(b) + bounds.most(total)))


@op("MaxPool", "AveragePool", domain=NCHWC)
def pool(g):
    kernel, strides, dilations, pads, sizes = window(g, 2)
    if not window_attrs(g, kernel, strides, dilations, pads, 1) and \
            not fits(sizes, kernel, dilations):
        raise Redraw
    if "SAME" in g.attrs.get("auto_pad", "") and any(
            k < s for k, s in zip(kernel, strides, strict=True)):
        raise Redraw  # would need negative padding
    g.types["T"] = "tensor(float)"
    g.attr("count_include_pad", [0, 1])
    if g.name == "AveragePool":
        g.attrs.pop("dilations", None)
        if not fits(sizes, kernel, [1, 1]):
            raise Redraw
    x = g.input(small(g, F32, g.int(1, 2), BLOCK * g.int(1, 2), *sizes))
    if g.name == "MaxPool":
        attrs = g.attrs
        g.formula = lambda x: [in_planes(x, lambda v: formulas.max_pool(v, attrs))]
    if g.name == "AveragePool":
        g.tolerance = Tolerance(ulps=2, scale=bounds.dot(int(np.prod(kernel)) + 1, x))


@op("GlobalMaxPool", "GlobalAveragePool", domain=NCHWC)
def global_pool(g):
    x = g.input(blocked(g))
    if g.name == "GlobalAveragePool":  # a mean: the sum's bound, divided by the count
        g.tolerance = Tolerance(ulps=4, scale=bounds.dot(int(np.prod(x.shape[2:])), x))


@op("Upsample", domain=NCHWC)
def upsample(g):
    mode = g.attr("mode", ["nearest", "linear"], 1)
    if mode == "linear":
        g.attr("coordinate_transformation_mode", ["asymmetric", "align_corners", "half_pixel"], 1)
    g.attrs["scales"] = [1, 1, g.int(1, 3), g.int(1, 3)]
    x = g.input(blocked(g))
    # Coordinates are off by eps times the size, at slopes of at most 2 max|x| between neighbours.
    g.tolerance = Tolerance(ulps=4, scale=8 * max(x.shape[2:]) * 2 * bounds.most(x))
