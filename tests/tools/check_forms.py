#!/usr/bin/env python3
"""Patterns as exporters of PyTorch write them, built with onnx.helper: ort-optimize must find each,
and onnxruntime must compute the same of the file that it writes.

usage: check_forms.py [NAME...]
"""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from check_written import check

SIZES = {"batch": 2, "seq": 5}  # of symbolic dims, when a model runs
TOOL = pathlib.Path(__file__).resolve().parents[2] / "build/bin/ort-optimize"
FORMS = {}


class Net:
    """g.op("MatMul", x, w, axis=1): a node, and the name of its result (of several: a list)."""

    def __init__(self, opset):
        self.opset, self.nodes, self.inputs, self.constants = opset, [], [], []
        self.feeds = {}
        self.random = np.random.default_rng(7)

    def input(self, name, shape, below=0):
        """Floats; int64 numbers from 0 on where `below` is given."""
        kind = TensorProto.INT64 if below else TensorProto.FLOAT
        sizes = [SIZES.get(d, d) for d in shape]
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        self.feeds[name] = (self.random.integers(0, below, sizes) if below
                            else self.random.normal(0, 1, sizes).astype(np.float32))
        return name

    def const(self, value, dtype=np.float32):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def ints(self, *values):
        return self.const(values, np.int64)

    def weight(self, *shape):
        return self.const(self.random.normal(0, 0.3, shape))

    def op(self, kind, *inputs, outs=1, **attributes):
        names = [f"v{len(self.nodes)}_{i}" for i in range(outs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, f"n{len(self.nodes)}",
                                           **attributes))
        return names[0] if outs == 1 else names

    def model(self, *results):
        outputs = [helper.make_empty_tensor_value_info(r) for r in results]
        graph = helper.make_graph(self.nodes, "form", self.inputs, outputs, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)],
                                  ir_version=10)
        return onnx.shape_inference.infer_shapes(model)


def form(*wanted, opset=17, contrib=False):
    """Of these operators the written file must hold one each ("!Op": none)."""
    def keep(build):
        FORMS[build.__name__] = (build, wanted, opset, contrib)
        return build
    return keep


# ---- codes

def coded(g, x, scale, zero):
    s, z = g.const(scale), g.const(zero, np.uint8)
    return g.op("DequantizeLinear", g.op("QuantizeLinear", x, s, z), s, z)


@form("QLinearWhere", contrib=True)
def where_of_codes(g):
    x, w = g.input("x", [2, 3, 5]), g.input("w", [2, 3, 5])
    c = g.op("Greater", x, w)
    r = g.op("Where", c, coded(g, x, 0.02, 120), coded(g, w, 0.03, 110))
    return [coded(g, r, 0.025, 118)]


@form("QLinearWhere", contrib=True)
def where_of_mask(g):
    x, w = g.input("x", [2, 3, 5]), g.input("w", [2, 3, 5])
    c = g.op("Greater", x, w)
    r = g.op("Where", c, g.const(-np.inf), coded(g, x, 0.02, 120))
    return [coded(g, r, 0.025, 118)]


@form("Where", "!Cast")
def where_of_one_scale(g):
    x, w = g.input("x", [2, 3, 5]), g.input("w", [2, 3, 5])
    c = g.op("Greater", x, w)
    return [coded(g, g.op("Where", c, coded(g, x, 0.02, 120), coded(g, w, 0.02, 120)), 0.02, 120)]


@form("ArgMax", "!DequantizeLinear")
def argmax_of_codes(g):
    x = coded(g, g.input("x", [2, 30]), 0.1, 120)
    return [g.op("ArgMax", x, axis=-1, keepdims=0)]


@form("MatMulIntegerToFloat", contrib=True)
def product_to_float(g):
    x = coded(g, g.input("x", [2, 3, 16]), 0.02, 120)
    w = g.const(g.random.integers(0, 255, (16, 8)), np.uint8)
    w = g.op("DequantizeLinear", w, g.const(0.01), g.const(128, np.uint8))
    return [g.op("Softmax", g.op("MatMul", x, w))]


@form("QGemm", contrib=True)
def gemm_to_float(g):
    x = coded(g, g.input("x", [4, 16]), 0.02, 120)
    w = g.const(g.random.integers(-127, 127, (8, 16)), np.int8)
    w = g.op("DequantizeLinear", w, g.const(0.01), g.const(0, np.int8))
    b = g.op("DequantizeLinear", g.const(g.random.integers(-900, 900, 8), np.int32),
             g.const(np.float32(0.02) * np.float32(0.01)))
    return [g.op("Gemm", x, w, b, transB=1)]


@form("Resize", "DequantizeLinear")
def resize_of_codes(g):
    x = coded(g, g.input("x", [1, 2, 4, 4]), 0.02, 120)
    r = g.op("Resize", x, "", g.const([1, 1, 2, 2]), mode="nearest",
             coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    return [coded(g, r, 0.02, 120)]


# ---- shapes

@form("!Mul", "Concat", opset=13)
def shape_of_several_steps(g):
    x = g.input("x", ["batch", "seq", 8])
    shape = g.op("Shape", x)
    batch, seq = (g.op("Gather", shape, g.ints(axis)) for axis in (0, 1))
    wide = g.op("Concat", g.op("Mul", seq, g.ints(2)), batch, g.ints(4), axis=0)
    columns = g.op("Softmax", g.op("Reshape", x, wide), axis=0)
    return [g.op("Reshape", columns, g.ints(-1))]


@form("Expand", "!Sub", "!CastLike", opset=18)
def bias_like_the_input(g):
    """What is computed of constants needs the type of x alone; its name is short."""
    x = g.input("x", ["batch", 8])
    row = g.op("CastLike", g.const(0.5), x)
    return [g.op("Expand", g.op("Sub", row, g.const(0.25)), g.op("Shape", x))]


# ---- left from training

def trained(g, behind):
    """Before opset 14 BatchNormalization takes statistics of its batch when it has five results,
    whether anybody reads these or not."""
    x = g.input("x", ["batch", 4, 6, 6])
    numbers = [g.weight(4), g.weight(4), g.weight(4), g.const(g.random.random(4) + 0.5)]
    if behind:
        x = g.op("Conv", x, g.weight(4, 4, 3, 3), kernel_shape=[3, 3])
    y = g.op("BatchNormalization", x, *numbers, outs=5)[0]
    return [y if behind else g.op("Conv", y, g.weight(4, 4, 3, 3), kernel_shape=[3, 3])]


@form("BatchNormalization", "Conv", opset=9)
def training_norm_behind_conv(g):
    return trained(g, True)


@form("BatchNormalization", "Conv", opset=13)
def training_norm_before_conv(g):
    return trained(g, False)


# ---- products

@form("FusedMatMul", "!Transpose", contrib=True)
def product_over_batches(g):
    a = g.op("Transpose", g.input("x", [5, 2, 3, 7]), perm=[1, 2, 0, 3])
    b = g.op("Transpose", g.input("w", [4, 2, 3, 7]), perm=[1, 2, 3, 0])
    return [g.op("Mul", g.op("MatMul", a, b), g.const(0.25))]


@form("FusedMatMul", "!Transpose", contrib=True)
def product_over_one_batch(g):
    a = g.op("Transpose", g.input("x", [5, 1, 3, 7]), perm=[1, 2, 0, 3])
    return [g.op("MatMul", a, g.input("w", [2, 3, 7, 4]))]


@form("FusedMatMul", "!Transpose", contrib=True)
def product_of_steps(g):
    """torch.bmm of [seq, batch, hidden]."""
    a = g.op("Transpose", g.input("x", ["seq", "batch", 8]), perm=[1, 0, 2])
    b = g.op("Transpose", g.input("w", ["seq", "batch", 8]), perm=[1, 2, 0])
    return [g.op("Softmax", g.op("MatMul", a, b))]


# ---- rotary embedding, in pairs

def shape_of(g, x, *last):
    """[batch, seq, *last] as torch.Tensor.view computes it."""
    dims = [g.op("Gather", g.op("Shape", x), g.const(d, np.int64), axis=0) for d in (0, 1)]
    parts = [g.op("Unsqueeze", d, g.ints(0)) for d in dims] + [g.ints(n) for n in last]
    return g.op("Concat", *parts, axis=0)


def angles(g, seq, half):
    """[seq, half], as of positions 0, 1 ... times inverse frequencies."""
    positions = g.op("Range", g.const(0, np.int64), seq, g.const(1, np.int64))
    positions = g.op("Cast", g.op("Unsqueeze", positions, g.ints(1)), to=TensorProto.FLOAT)
    return g.op("Mul", positions, g.const(1 / 10 ** (np.arange(half) / half)))


def every_two(g, x):
    """rotate_every_two of GPT-J."""
    ends, last, two = g.ints(2 ** 63 - 1), g.ints(-1), g.ints(2)
    even = g.op("Slice", x, g.ints(0), ends, last, two)
    odd = g.op("Slice", x, g.ints(1), ends, last, two)
    parts = [g.op("Unsqueeze", p, last) for p in (g.op("Neg", odd), even)]
    return g.op("Concat", *parts, axis=-1)


def twice(g, f):
    """torch.repeat_interleave(f, 2, dim=-1) of [batch, seq, 1, h]."""
    wide = g.op("Expand", g.op("Unsqueeze", f, g.ints(4)), g.ints(1, 1, 1, 1, 2))
    return g.op("Reshape", wide, g.ints(0, 0, 1, -1))


@form("RotaryEmbedding", "!Expand", "!Neg", opset=23)
def rotary_gptj(g):
    x, ids = g.input("x", ["batch", "seq", 32]), g.input("ids", ["batch", "seq"], 9)
    heads = g.op("Reshape", x, g.ints(0, 0, 4, 8))
    sincos = g.op("Gather", g.weight(16, 8), ids)
    sin, cos = g.op("Split", sincos, outs=2, axis=-1, num_outputs=2)
    sin, cos = (twice(g, g.op("Unsqueeze", t, g.ints(2))) for t in (sin, cos))
    rotated = g.op("Reshape", every_two(g, heads), g.ints(0, 0, 4, 8))
    y = g.op("Add", g.op("Mul", heads, cos), g.op("Mul", rotated, sin))
    return [g.op("Transpose", y, perm=[0, 2, 1, 3])]


@form("RotaryEmbedding", "!Neg", contrib=True)
def rotary_gptj_contrib(g):
    x, ids = g.input("x", ["batch", "seq", 32]), g.input("ids", ["batch", "seq"], 9)
    heads = g.op("Reshape", x, g.ints(0, 0, 4, 8))
    sin, cos = (twice(g, g.op("Unsqueeze", g.op("Gather", g.weight(16, 4), ids), g.ints(2)))
                for _ in range(2))
    rotated = g.op("Reshape", every_two(g, heads), g.ints(0, 0, 4, 8))
    y = g.op("Add", g.op("Mul", heads, cos), g.op("Mul", rotated, sin))
    return [g.op("Transpose", y, perm=[0, 2, 1, 3])]


def twice_by_columns(g, f):
    """The same for h = 4, column by column, as the exporter of PyTorch 1 writes it."""
    columns = g.op("Split", f, g.ints(1, 1, 1, 1), outs=4, axis=-1)
    wide = [g.op("Expand", g.op("Unsqueeze", c, g.ints(4)), g.ints(1, 1, 1, 1, 2)) for c in columns]
    return g.op("Concat", *(g.op("Reshape", w, g.ints(0, 0, 1, -1)) for w in wide), axis=-1)


@form("RotaryEmbedding", "!Neg", "!Expand", contrib=True)
def rotary_codegen_contrib(g):
    x, ids = g.input("x", ["batch", "seq", 32]), g.input("ids", ["batch", "seq"], 9)
    heads = g.op("Reshape", x, g.ints(0, 0, 4, 8))
    sin, cos = g.op("Split", g.op("Gather", g.weight(16, 8), ids), g.ints(4, 4), outs=2, axis=-1)
    sin, cos = (twice_by_columns(g, g.op("Unsqueeze", t, g.ints(2))) for t in (sin, cos))
    rotated = g.op("Reshape", every_two(g, heads), g.ints(0, 0, 4, 8))
    y = g.op("Add", g.op("Mul", heads, cos), g.op("Mul", rotated, sin))
    return [g.op("Transpose", y, perm=[0, 2, 1, 3])]


@form("RotaryEmbedding", "!Neg", opset=23)
def rotary_gptj_partly(g):
    """Half of each head is rotated, before heads and tokens change places."""
    x, ids = g.input("x", ["batch", "seq", 64]), g.input("ids", ["batch", "seq"], 9)
    heads = g.op("Reshape", x, g.ints(0, 0, 4, 16))
    turned = g.op("Slice", heads, g.ints(0), g.ints(8), g.ints(3))
    rest = g.op("Slice", heads, g.ints(8), g.ints(2 ** 63 - 1), g.ints(3))
    sin, cos = (twice(g, g.op("Unsqueeze", g.op("Gather", g.weight(16, 4), ids), g.ints(2)))
                for _ in range(2))
    rotated = g.op("Reshape", every_two(g, turned), g.ints(0, 0, 4, 8))
    y = g.op("Add", g.op("Mul", turned, cos), g.op("Mul", rotated, sin))
    return [g.op("Transpose", g.op("Concat", y, rest, axis=-1), perm=[0, 2, 1, 3])]


def roformer(g):
    """Tables of stacked pairs, for heads first."""
    x = g.input("x", ["batch", "seq", 32])
    heads = g.op("Transpose", g.op("Reshape", x, g.ints(0, 0, 4, 8)), perm=[0, 2, 1, 3])
    seq = g.op("Gather", g.op("Shape", x), g.const(1, np.int64))
    a = g.op("Unsqueeze", angles(g, seq, 4), g.ints(0, 1))
    tables = []
    for kind in ("Sin", "Cos"):
        t = g.op("Unsqueeze", g.op(kind, a), g.ints(-1))
        tables.append(g.op("Reshape", g.op("Concat", t, t, axis=-1), g.ints(1, 1, -1, 8)))
    rotated = g.op("Reshape", every_two(g, heads), g.op("Shape", heads))
    return [g.op("Add", g.op("Mul", heads, tables[1]), g.op("Mul", rotated, tables[0]))]


@form("RotaryEmbedding", "!Neg", opset=23)
def rotary_roformer(g):
    return roformer(g)


@form("RotaryEmbedding", "!Neg", contrib=True)
def rotary_roformer_contrib(g):
    return roformer(g)


def llama(g, select):
    """Products of complex numbers, spelled in real ones."""
    x = g.input("x", ["batch", "seq", 32])
    paired = g.op("Reshape", g.op("Reshape", x, shape_of(g, x, 4, 8)), shape_of(g, x, 4, 4, 2))
    a, b = select(g, paired)
    seq = g.op("Gather", g.op("Shape", x), g.const(1, np.int64))
    t = g.op("Unsqueeze", angles(g, seq, 4), g.ints(0, 2))
    cos, sin = g.op("Cos", t), g.op("Sin", t)
    real = g.op("Sub", g.op("Mul", a, cos), g.op("Mul", b, sin))
    imaginary = g.op("Add", g.op("Mul", a, sin), g.op("Mul", b, cos))
    both = g.op("Concat", *(g.op("Unsqueeze", p, g.ints(-1)) for p in (real, imaginary)), axis=-1)
    y = g.op("Reshape", both, shape_of(g, x, 4, 8))
    return [g.op("Transpose", y, perm=[0, 2, 1, 3])]


def by_gather(g, x):
    return [g.op("Gather", x, g.const(i, np.int64), axis=4) for i in (0, 1)]


def by_split(g, x):
    parts = g.op("Split", x, g.ints(1, 1), outs=2, axis=-1)
    return [g.op("Squeeze", p, g.ints(-1)) for p in parts]


@form("RotaryEmbedding", "!Sub", opset=23)
def rotary_llama(g):
    return llama(g, by_gather)


@form("RotaryEmbedding", "!Sub", contrib=True)
def rotary_llama_contrib(g):
    return llama(g, by_split)


@form("RotaryEmbedding", "!Sub", opset=23)
def rotary_halves_of_two_results(g):
    """gpt-oss: both halves computed by themselves."""
    x, ids = g.input("x", ["batch", "seq", 32]), g.input("ids", ["batch", "seq"], 9)
    heads = g.op("Transpose", g.op("Reshape", x, g.ints(0, 0, 4, 8)), perm=[0, 2, 1, 3])
    a, b = g.op("Split", heads, outs=2, axis=-1, num_outputs=2)
    cos, sin = (g.op("Unsqueeze", g.op("Gather", g.weight(16, 4), ids), g.ints(1))
                for _ in range(2))
    return [g.op("Concat", g.op("Sub", g.op("Mul", a, cos), g.op("Mul", b, sin)),
                 g.op("Add", g.op("Mul", b, cos), g.op("Mul", a, sin)), axis=-1)]


# ---- attention with heads folded into the batch

def folded(g, x, name_batch):
    """[batch * 4, seq, 8] of OPT and BART: view, transpose, view."""
    y = g.op("MatMul", x, g.weight(32, 32))
    y = g.op("Transpose", g.op("Reshape", y, g.ints(0, -1, 4, 8)), perm=[0, 2, 1, 3])
    return g.op("Reshape", y, g.ints(name_batch * 4, -1, 8))


def opt(g, batch, mask):
    x = g.input("x", [batch, "seq", 32])
    q, k, v = (folded(g, x, batch) for _ in range(3))
    k = g.op("Transpose", k, perm=[0, 2, 1])
    scores = g.op("MatMul", g.op("Mul", q, g.const(8 ** -0.5)), k)
    if mask:
        seq = g.op("Slice", g.op("Shape", x), g.ints(1), g.ints(2))
        apart = g.op("Concat", g.ints(batch, 4), seq, seq, axis=0)
        m = g.input("m", [batch, 1, "seq", "seq"])
        scores = g.op("Add", g.op("Reshape", scores, apart), m)
        scores = g.op("Reshape", scores, g.op("Concat", g.ints(batch * 4), seq, seq, axis=0))
    y = g.op("MatMul", g.op("Softmax", scores, axis=-1), v)
    y = g.op("Transpose", g.op("Reshape", y, g.ints(batch, 4, -1, 8)), perm=[0, 2, 1, 3])
    y = g.op("Reshape", y, g.ints(batch, -1, 32))
    return [g.op("MatMul", y, g.weight(32, 32))]


@form("Attention", "!Softmax", opset=23)
def attention_folded(g):
    return opt(g, 2, False)


@form("Attention", "!Softmax", opset=23)
def attention_folded_with_mask(g):
    return opt(g, 2, True)


@form("MultiHeadAttention", "!Softmax", contrib=True)
def attention_folded_contrib(g):
    return opt(g, 1, True)


# ---- attention with masks of keys

def encoder(g, low, mask):
    """A layer's attention, all projections with a bias; low(scores, mask) lowers the scores."""
    x = "x" if "x" in g.feeds else g.input("x", ["batch", "seq", 32])
    q, k, v = (g.op("Add", g.op("MatMul", x, g.weight(32, 32)), g.weight(32)) for _ in range(3))
    q = g.op("Mul", q, g.const(8 ** -0.5))
    q, k, v = (g.op("Transpose", g.op("Reshape", t, g.ints(0, -1, 4, 8)), perm=[0, 2, 1, 3])
               for t in (q, k, v))
    scores = low(g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2])), mask)
    y = g.op("MatMul", g.op("Softmax", scores, axis=-1), v)
    return [g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3]), g.ints(0, -1, 32))]


def bert(g):
    mask = g.op("Unsqueeze", g.input("mask", ["batch", "seq"], 2), g.ints(1, 2))
    inverted = g.op("Sub", g.const(1), g.op("Cast", mask, to=TensorProto.FLOAT))
    return encoder(g, lambda s, m: g.op("Add", s, m),
                   g.op("Mul", inverted, g.const(np.finfo(np.float32).min)))


@form("Attention", "!Softmax", "!Sub", contrib=True)
def attention_bert_contrib(g):
    return bert(g)


@form("Attention", "!Softmax", opset=23)
def attention_bert(g):
    result = bert(g)
    g.feeds["mask"][1] = 0  # no key counts
    return result


def without_keys(g):
    """A mask that leaves the first row of the first batch no key, and the second batch none."""
    seq, low = g.op("Shape", g.input("x", ["batch", "seq", 32])), g.const(np.finfo(np.float32).min)
    seq = g.op("Gather", seq, g.const(1, np.int64))
    count = g.op("Range", g.const(0, np.int64), seq, g.const(1, np.int64))
    later = g.op("LessOrEqual", count, g.op("Unsqueeze", count, g.ints(1)))
    mask = g.op("Cast", g.input("mask", ["batch", "seq"], 2), to=TensorProto.BOOL)
    g.feeds["mask"][:] = [[0, 1, 1, 0, 1], [0] * 5]
    keep = g.op("And", later, g.op("Unsqueeze", mask, g.ints(1, 2)))
    return g.op("Where", keep, g.const(0), low)


@form("Attention", "!Softmax", "!Equal", opset=23)
def attention_without_keys(g):
    return encoder(g, lambda s, m: g.op("Add", s, m), without_keys(g))


@form("Attention", "!Softmax", "Equal", opset=23)
def attention_of_lowest_products(g):
    mask = g.op("Sub", g.const(1), g.input("mask", ["batch", 1, "seq", "seq"]))
    g.feeds["mask"] = g.random.integers(0, 2, (2, 1, 5, 5)).astype(np.float32)
    g.feeds["mask"][1, 0, 2] = 0
    return encoder(g, lambda s, m: g.op("Add", s, m),
                   g.op("Mul", mask, g.const(np.finfo(np.float32).min)))


@form("BiasGelu", contrib=True, opset=20)
def gelu_without_approximation(g):
    x = g.op("MatMul", g.input("x", ["batch", "seq", 8]), g.weight(8, 16))
    return [g.op("Gelu", g.op("Add", x, g.weight(16)), approximate="none")]


@form("Attention", "!Softmax", "!Where", contrib=True, opset=14)
def attention_bart(g):
    mask = g.input("mask", ["batch", "seq"], 2)
    seq = g.op("Slice", g.op("Shape", mask), g.ints(1), g.ints(2))
    batch = g.op("Slice", g.op("Shape", mask), g.ints(0), g.ints(1))
    wide = g.op("Expand", g.op("Unsqueeze", mask, g.ints(1, 2)),
                g.op("Concat", batch, g.ints(1), seq, seq, axis=0))
    inverted = g.op("Sub", g.const(1), g.op("Cast", wide, to=TensorProto.FLOAT))
    lowered = g.op("Where", g.op("Cast", inverted, to=TensorProto.BOOL),
                   g.const(np.finfo(np.float32).min), inverted)
    return encoder(g, lambda s, m: g.op("Add", s, m), lowered)


@form("Attention", "!Softmax", "!Where", contrib=True)
def attention_of_padding(g):
    """Tokens of number 0 are padding."""
    padding = g.op("Equal", g.input("ids", ["batch", "seq"], 3), g.const(0, np.int64))
    lowered = g.op("Where", padding, g.const(-1e9), g.const(0))
    return encoder(g, lambda s, m: g.op("Add", s, m), g.op("Unsqueeze", lowered, g.ints(1, 2)))


# ---- disentangled attention

def disentangled(g, zeroed, folds):
    """DeBERTa's: products with keys and queries of relative positions, gathered by distance, are
    summed onto the scores. Its export by TorchScript puts probabilities of padding to 0; heads are
    folded into the batch in version 2."""
    x, mask = g.input("x", ["batch", "seq", 32]), g.input("mask", ["batch", "seq"], 2)
    g.feeds["mask"][0, 0] = 1
    batch, seq = (g.op("Slice", g.op("Shape", x), g.ints(i), g.ints(i + 1)) for i in (0, 1))
    four, length = g.ints(4), g.op("Squeeze", seq, g.ints(0))
    wide, apart = g.op("Concat", g.ints(-1), seq, g.ints(8), axis=0), g.ints(0, 0, 4, 8)

    def heads(y):
        y = g.op("Transpose", g.op("Reshape", y, apart), perm=[0, 2, 1, 3])
        return g.op("Reshape", y, wide) if folds else y

    q, k, v = (heads(g.op("Add", g.op("MatMul", x, g.weight(32, 32)), g.weight(32)))
               for _ in range(3))
    last = [0, 2, 1] if folds else [0, 1, 3, 2]
    count = g.op("Range", g.const(0, np.int64), length, g.const(1, np.int64))
    away = g.op("Sub", g.op("Unsqueeze", count, g.ints(1)), g.op("Unsqueeze", count, g.ints(0)))
    all_heads = [g.op("Mul", batch, four)] if folds else [batch, four]
    dims = g.op("Concat", *all_heads, seq, seq, axis=0)
    relative = []
    for side, sign in ((q, 1), (k, -1)):
        at = g.op("Clip", g.op("Add", g.op("Mul", away, g.const(sign, np.int64)),
                               g.const(8, np.int64)), g.const(0, np.int64), g.const(15, np.int64))
        table = g.weight(*([1, 8, 16] if folds else [1, 4, 8, 16]))
        relative.append(g.op("GatherElements", g.op("MatMul", side, table),
                             g.op("Expand", at, dims), axis=-1))
    bias = g.op("Add", relative[0], g.op("Transpose", relative[1], perm=last))
    scores = g.op("MatMul", g.op("Mul", q, g.const(0.2)), g.op("Transpose", k, perm=last))
    scores = g.op("Add", scores, bias)
    if folds:
        scores = g.op("Reshape", scores, g.op("Concat", g.ints(-1, 4), seq, seq, axis=0))
    row = g.op("Unsqueeze", mask, g.ints(1, 2))
    drop = g.op("Sub", g.const(1, np.int64), g.op("Mul", row, g.op("Unsqueeze", mask, g.ints(1, 3))))
    drop = g.op("Cast", drop, to=TensorProto.BOOL)
    p = g.op("Softmax", g.op("Where", drop, g.const(np.finfo(np.float32).min), scores), axis=-1)
    p = g.op("Where", drop, g.const(0), p) if zeroed else p
    p = g.op("Reshape", p, g.op("Concat", g.ints(-1), seq, seq, axis=0)) if folds else p
    y = g.op("MatMul", p, v)
    y = g.op("Reshape", y, g.op("Concat", g.ints(-1, 4), seq, g.ints(8), axis=0)) if folds else y
    return [g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3]), g.ints(0, 0, 32))]


@form("Attention", "!Softmax", contrib=True)
def attention_disentangled_contrib(g):
    return disentangled(g, False, False)


@form("Attention", "ReduceMin", "!Softmax", contrib=True)
def attention_disentangled_zeroed_contrib(g):
    return disentangled(g, True, False)


@form("Attention", "!Softmax", opset=23)
def attention_disentangled_zeroed(g):
    return disentangled(g, True, False)


@form("Attention", "!Softmax", contrib=True)
def attention_disentangled_folded_contrib(g):
    return disentangled(g, False, True)


@form("Attention", "!Softmax", opset=23)
def attention_disentangled_folded_zeroed(g):
    return disentangled(g, True, True)


# ---- decoders

def guarded_decoder(g, padded=False):
    """scaled_dot_product_attention as torch.onnx.export(dynamo=True) writes it: keys are turned
    while heads are folded, and rows without a key give 0. Where it is padded there are some."""
    x = g.input("x", ["batch", "seq", 32])
    heads = [g.op("Transpose", g.op("Reshape", g.op("MatMul", x, g.weight(32, 32)),
                                    g.ints(0, 0, 4, 8)), perm=[0, 2, 1, 3]) for _ in range(3)]
    q, k, v = heads
    size = g.op("Shape", k)
    seq, lead = g.op("Slice", size, g.ints(-2), g.ints(-1)), g.op("Slice", size, g.ints(0),
                                                                  g.ints(-2))
    folded_k = g.op("Reshape", k, g.op("Concat", g.ints(-1), seq, g.ints(8), axis=0))
    turned = g.op("Reshape", g.op("Transpose", folded_k, perm=[0, 2, 1]),
                  g.op("Concat", lead, g.ints(8), seq, axis=0))
    row = g.op("Range", g.const(0, np.int64), g.op("Squeeze", seq), g.const(1, np.int64))
    column, line = g.op("Unsqueeze", row, g.ints(0)), g.op("Unsqueeze", row, g.ints(1))
    after = g.op("LessOrEqual", column, line)
    if padded:
        tokens = g.op("Cast", g.input("mask", ["batch", "seq"], 2), to=TensorProto.BOOL)
        after = g.op("And", after, g.op("Unsqueeze", tokens, g.ints(1, 2)))
        g.feeds["mask"][0] = [0, 0, 1, 1, 0]
    low = g.op("Where", after, g.const(0), g.const(-np.inf if padded else
                                                   np.finfo(np.float32).min))
    root = g.const(8 ** -0.25)
    p = g.op("Softmax", g.op("Add", g.op("MatMul", g.op("Mul", q, root), g.op("Mul", turned, root)),
                             low), axis=-1)
    y = g.op("MatMul", g.op("Where", g.op("IsNaN", p), g.const(0), p), v)
    return [g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3]), g.ints(0, 0, 32))]


@form("Attention", "!Softmax", "!IsNaN", opset=23)
def guarded_attention(g):
    return guarded_decoder(g)


@form("MultiHeadAttention", "!Softmax", "!IsNaN", opset=18, contrib=True)
def guarded_attention_contrib(g):
    return guarded_decoder(g)


@form("MultiHeadAttention", "!Softmax", "!IsNaN", opset=18, contrib=True)
def guarded_attention_of_padding_contrib(g):
    return guarded_decoder(g, True)


@form("MultiHeadAttention", "!Softmax", "!IsNaN", contrib=True)
def guarded_attention_of_padding_contrib_old(g):
    return guarded_decoder(g, True)


@form("RotaryEmbedding", "!Neg", opset=23)
def rotation_by_rows_that_are_cut(g):
    """Rows of a table, cut to the length, by positions that the batch shares."""
    x = g.input("x", ["batch", 4, "seq", 8])
    angles = g.random.normal(0, 1, (16, 4)).astype(np.float32)
    seq = g.op("Slice", g.op("Shape", x), g.ints(2), g.ints(3))
    at = g.op("Unsqueeze", g.op("Range", g.const(0, np.int64), g.op("Squeeze", seq),
                                g.const(1, np.int64)), g.ints(0))
    cos, sin = (g.op("Unsqueeze", g.op("Gather", g.op("Slice", g.const(np.tile(f(angles), (1, 2))),
                                                      g.ints(0), seq, g.ints(0)), at), g.ints(1))
                for f in (np.cos, np.sin))
    low, high = (g.op("Slice", x, g.ints(i), g.ints(i + 4), g.ints(3)) for i in (0, 4))
    half = g.op("Concat", g.op("Neg", high), low, axis=-1)
    return [g.op("Add", g.op("Mul", x, cos), g.op("Mul", half, sin))]


# ---- attention of torch.nn.MultiheadAttention

def steps_first(g, padded):
    """x [seq, batch, 32]; a key is padding where pad [batch, seq] is 0."""
    x, pad = g.input("x", ["seq", "batch", 32]), g.input("pad", ["batch", "seq"], 2)
    qkv = g.op("Add", g.op("MatMul", x, g.weight(32, 96)), g.weight(96))
    q, k, v = (g.op("Slice", qkv, g.ints(32 * i), g.ints(32 * i + 32), g.ints(2)) for i in range(3))
    q, k, v = (g.op("Transpose", g.op("Reshape", t, g.ints(0, -1, 8)), perm=[1, 0, 2])
               for t in (q, k, v))
    scores = g.op("MatMul", g.op("Div", q, g.const(8 ** 0.5)),
                  g.op("Transpose", k, perm=[0, 2, 1]))
    if padded:
        size = g.op("Shape", pad)
        batch, seq = g.op("Slice", size, g.ints(0), g.ints(1)), g.op("Slice", size, g.ints(1),
                                                                      g.ints(2))
        mask = g.op("Where", g.op("Equal", pad, g.const(0, np.int64)), g.const(-1e9), g.const(0))
        mask = g.op("Reshape", mask, g.op("Concat", batch, g.ints(1, 1), seq, axis=0))
        mask = g.op("Expand", mask, g.ints(1, 4, 1, 1))
        folded_shape = g.op("Concat", g.op("Mul", batch, g.ints(4)), g.ints(1), seq, axis=0)
        scores = g.op("Add", scores, g.op("Reshape", mask, folded_shape))
    y = g.op("Transpose", g.op("MatMul", g.op("Softmax", scores, axis=-1), v), perm=[1, 0, 2])
    return [g.op("Gemm", g.op("Reshape", y, g.ints(-1, 32)), g.weight(32, 32), g.weight(32))]


@form("MultiHeadAttention", "!Softmax", contrib=True)
def attention_of_steps_contrib(g):
    return steps_first(g, False)


@form("MultiHeadAttention", "!Softmax", "!Where", contrib=True, opset=14)
def attention_of_padded_steps_contrib(g):
    return steps_first(g, True)


@form("Attention", "!Softmax", opset=23)
def attention_of_padded_steps(g):
    return steps_first(g, True)


# ---- norms of rows

@form("MatMul", "Add", "!BatchNormalization", "!Flatten", "!Reshape", opset=13)
def linear_and_norm(g):
    """Linear without a bias and BatchNorm1d of its rows (LeViT), twice."""
    y = g.input("x", [2, 6, 8])
    for _ in range(2):
        y = g.op("Flatten", g.op("MatMul", y, g.weight(8, 8)), axis=2)
        s, b, m = g.weight(8), g.weight(8), g.weight(8)
        y = g.op("BatchNormalization", y, s, b, m, g.const(g.random.uniform(0.5, 2, 8)))
        y = g.op("Tanh", g.op("Reshape", y, g.ints(2, 6, 8)))
    return [y]


# ---- attention in windows

def swin(g, batch, shifted):
    """4 windows of 9 pixels in each image, relative positions, a mask where windows wrap round."""
    image = g.input("x", [batch, 4, 9, 16])
    x = g.op("Reshape", image, g.ints(-1, 9, 16))
    qkv = g.op("Add", g.op("MatMul", x, g.weight(16, 48)), g.weight(48))
    qkv = g.op("Transpose", g.op("Reshape", qkv, g.ints(-1, 9, 3, 2, 8)), perm=[2, 0, 3, 1, 4])
    q, k, v = (g.op("Gather", qkv, g.const(i, np.int64), axis=0) for i in range(3))
    q = g.op("Mul", q, g.const(8 ** -0.5))
    scores = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2]))
    table = g.op("Gather", g.weight(25, 2), g.const(g.random.integers(0, 25, 81), np.int64), axis=0)
    bias = g.op("Transpose", g.op("Reshape", table, g.ints(9, 9, 2)), perm=[2, 0, 1])
    scores = g.op("Add", scores, g.op("Reshape", bias, g.ints(1, 2, 9, 9)))
    if shifted:
        mask = g.const(np.where(g.random.random((1, 4, 1, 9, 9)) < 0.4, -100, 0))
        images = g.op("Slice", g.op("Shape", image), g.ints(0), g.ints(1))
        apart = g.op("Concat", images, g.ints(4, 2, 9, 9), axis=0)
        scores = g.op("Add", g.op("Reshape", scores, apart), mask)
        scores = g.op("Reshape", scores, g.ints(-1, 2, 9, 9))
    y = g.op("MatMul", g.op("Softmax", scores, axis=-1), v)
    y = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3]), g.ints(-1, 9, 16))
    return [g.op("MatMul", y, g.weight(16, 16))]


@form("Attention", "!Softmax", opset=23)
def attention_in_windows(g):
    return swin(g, 1, False)


@form("Attention", "!Softmax", opset=23)
def attention_in_shifted_windows(g):
    return swin(g, 1, True)


@form("Attention", "!Softmax", opset=23)
def attention_in_windows_of_two(g):
    return swin(g, 2, True)


@form("MultiHeadAttention", "!Softmax", contrib=True)
def attention_in_windows_contrib(g):
    return swin(g, 2, True)


@form("Attention", "!Softmax", opset=23)
def attention_in_windows_of_any(g):
    return swin(g, "batch", True)


@form("MultiHeadAttention", "!Softmax", contrib=True)
def attention_in_windows_of_any_contrib(g):
    return swin(g, "batch", True)


@form("MultiHeadAttention", "!Softmax", contrib=True, opset=12)
def attention_in_windows_of_any_old(g):
    return swin(g, "batch", True)


# ---- one step of a decoder, whose keys and values are kept

def step(g, folded, cross):
    """4 heads of 8, one query; heads are folded into the batch, or not; keys are appended to past
    ones of seq rows, or those of an encoder are given, with a mask."""
    x = g.input("x", ["batch", 1, 32])
    batch = g.op("Gather", g.op("Shape", x), g.ints(0), axis=0)

    def heads():
        y = g.op("Add", g.op("MatMul", x, g.weight(32, 32)), g.weight(32))
        shape = g.op("Concat", batch, g.ints(-1, 4, 8), axis=0)
        return g.op("Transpose", g.op("Reshape", y, shape), perm=[0, 2, 1, 3])

    def kept(name):
        past = g.input(name, ["batch", 4, "seq", 8])
        return past if cross else g.op("Concat", past, heads(), axis=2)

    def fold(y):
        shape = g.op("Concat", g.op("Mul", batch, g.ints(4)), g.ints(-1, 8), axis=0)
        return g.op("Reshape", y, shape) if folded else y

    q, k, v = g.op("Mul", heads(), g.const(8 ** -0.5)), kept("past_k"), kept("past_v")
    turned = g.op("Transpose", fold(k), perm=[0, 2, 1] if folded else [0, 1, 3, 2])
    scores = g.op("MatMul", fold(q), turned)
    apart = g.op("Concat", batch, g.ints(4, 1, -1), axis=0)
    if cross:
        wide = g.op("Reshape", scores, apart) if folded else scores
        mask = g.op("Cast", g.input("mask", ["batch", "seq"], below=2), to=TensorProto.FLOAT)
        low = g.op("Mul", g.op("Sub", g.const(1.0), mask), g.const(-3.4e38))
        scores = g.op("Add", wide, g.op("Unsqueeze", low, g.ints(1, 2)))
        if folded:
            shape = g.op("Concat", g.op("Mul", batch, g.ints(4)), g.ints(1, -1), axis=0)
            scores = g.op("Reshape", scores, shape)
    y = g.op("MatMul", g.op("Softmax", scores, axis=-1), fold(v))
    if folded:
        y = g.op("Reshape", y, g.op("Concat", batch, g.ints(4, 1, 8), axis=0))
    y = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3]),
             g.op("Concat", batch, g.ints(1, 32), axis=0))
    return (y,) if cross else (y, k, v)


@form("MultiHeadAttention", "!Softmax", "!Concat", contrib=True)
def step_with_cache(g):
    return step(g, False, False)


@form("MultiHeadAttention", "!Softmax", "!Concat", contrib=True)
def step_with_cache_folded(g):
    return step(g, True, False)


@form("MultiHeadAttention", "!Softmax", contrib=True)
def step_across(g):
    return step(g, False, True)


@form("MultiHeadAttention", "!Softmax", contrib=True)
def step_across_folded(g):
    return step(g, True, True)


@form("Attention", "!Softmax", opset=23)
def step_with_cache_folded_onnx(g):
    return step(g, True, False)


@form("Attention", "!Softmax", opset=23)
def step_across_folded_onnx(g):
    return step(g, True, True)


def cosine(g):
    """Windows of rows that are normed, scaled for each head (Swin v2)."""
    x = g.input("x", ["batch", 9, 16])
    qkv = g.op("Add", g.op("MatMul", x, g.weight(16, 48)), g.weight(48))
    qkv = g.op("Transpose", g.op("Reshape", qkv, g.ints(-1, 9, 3, 2, 8)), perm=[2, 0, 3, 1, 4])
    q, k, v = (g.op("Gather", qkv, g.const(i, np.int64), axis=0) for i in range(3))
    q, k = (g.op("Div", h, g.op("Clip", g.op("ReduceL2", h, axes=[-1], keepdims=1), g.const(1e-12)))
            for h in (q, k))
    scores = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2]))
    scale = g.op("Exp", g.op("Clip", g.weight(2, 1, 1), "", g.const(4.6)))
    scores = g.op("Add", g.op("Mul", scores, scale), g.weight(1, 2, 9, 9))
    y = g.op("MatMul", g.op("Softmax", scores, axis=-1), v)
    y = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3]), g.ints(-1, 9, 16))
    return [g.op("MatMul", y, g.weight(16, 16))]


@form("MultiHeadAttention", "!Softmax", contrib=True)
def cosine_attention(g):
    return cosine(g)


def one_head(g, turn):
    """Keys and values of fewer rows (PVT, SegFormer), or of as many (VAE)."""
    x = g.input("x", ["batch", 12, 16])
    q, k, v = (g.op("Add", g.op("MatMul", x, g.weight(16, 16)), g.weight(16)) for _ in range(3))
    q, k, v = (g.op("Transpose", g.op("Reshape", h, g.ints(0, -1, 1, 16)), perm=[0, 2, 1, 3])
               for h in (q, k, v))
    if turn:
        k = g.op("Transpose", g.op("Reshape", k, g.ints(-1, 12, 16)), perm=[0, 2, 1])
        k = g.op("Reshape", k, g.ints(-1, 1, 16, 12))
    else:
        k = g.op("Transpose", k, perm=[0, 1, 3, 2])
    scores = g.op("Mul", g.op("MatMul", q, k), g.const(0.25))
    y = g.op("Transpose", g.op("MatMul", g.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    return [g.op("MatMul", g.op("Reshape", y, g.ints(-1, 12, 16)), g.weight(16, 16))]


@form("Attention", "!Softmax", "!Transpose", contrib=True)
def attention_of_one_head(g):
    return one_head(g, False)


@form("Attention", "!Softmax", "!Transpose", opset=23)
def attention_of_one_head_turned(g):
    return one_head(g, True)


@form("Attention", "!Softmax", "!Transpose", contrib=True)
def attention_of_one_head_turned_contrib(g):
    return one_head(g, True)


@form("MultiHeadAttention", "!Softmax", contrib=True)
def attention_of_wide_values(g):
    """Heads of v are wider than those of q and k (EfficientFormer, LeViT)."""
    x = g.input("x", ["batch", 9, 16])
    qkv = g.op("Reshape", g.op("MatMul", x, g.weight(16, 48)), g.ints(-1, 9, 2, 24))
    q, k, v = g.op("Split", g.op("Transpose", qkv, perm=[0, 2, 1, 3]), g.ints(6, 6, 12), outs=3,
                   axis=3)
    scores = g.op("Mul", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2])), g.const(0.4))
    scores = g.op("Add", scores, g.weight(2, 9, 9))
    y = g.op("MatMul", g.op("Softmax", scores, axis=-1), v)
    y = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3]), g.ints(-1, 9, 24))
    return [g.op("MatMul", y, g.weight(24, 16))]


@form("MultiHeadAttention", "!Softmax", contrib=True)
def attention_of_one_row(g):
    """The row of the class asks all (XCiT, CaiT)."""
    x = g.input("x", ["batch", 9, 16])
    row = g.op("Gather", x, g.const(0, np.int64), axis=1)
    q = g.op("Unsqueeze", g.op("Gemm", row, g.weight(16, 16), g.weight(16)), g.ints(1))
    q = g.op("Transpose", g.op("Reshape", q, g.ints(-1, 1, 2, 8)), perm=[0, 2, 1, 3])
    k, v = (g.op("Reshape", g.op("MatMul", x, g.weight(16, 16)), g.ints(-1, 9, 2, 8))
            for _ in range(2))
    scores = g.op("MatMul", g.op("Mul", q, g.const(8 ** -0.5)),
                  g.op("Transpose", k, perm=[0, 2, 3, 1]))
    y = g.op("MatMul", g.op("Softmax", scores, axis=-1), g.op("Transpose", v, perm=[0, 2, 1, 3]))
    y = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3]), g.ints(-1, 1, 16))
    return [g.op("MatMul", y, g.weight(16, 16))]


def shared_head(g):
    """One head of keys and values for 4 of queries, and a cache."""
    x = g.input("x", ["batch", "seq", 32])

    def heads(count):
        y = g.op("MatMul", x, g.weight(32, 8 * count))
        return g.op("Transpose", g.op("Reshape", y, g.ints(0, 0, count, 8)), perm=[0, 2, 1, 3])

    k, v = (g.op("Concat", g.input(name, ["batch", 1, 3, 8]), heads(1), axis=2)
            for name in ("past_k", "past_v"))
    scores = g.op("MatMul", heads(4), g.op("Transpose", k, perm=[0, 1, 3, 2]))
    p = g.op("Softmax", g.op("Mul", scores, g.const(8 ** -0.5)), axis=-1)
    y = g.op("Transpose", g.op("MatMul", p, v), perm=[0, 2, 1, 3])
    return g.op("Reshape", y, g.ints(0, 0, 32)), k, v


@form("Attention", "!Softmax", "!Concat", opset=23)
def attention_of_one_head_of_keys(g):
    return shared_head(g)


@form("Softmax", contrib=True)
def attention_of_one_head_of_keys_contrib(g):
    return shared_head(g)


def floored(g):
    """Heads folded into the batch; no score is less than the lowest number."""
    x = g.input("x", ["batch", "seq", 32])
    shape = g.op("Shape", x)
    batch, seq = (g.op("Gather", shape, g.ints(i), axis=0) for i in (0, 1))
    folded = g.op("Concat", g.op("Mul", batch, g.ints(4)), seq, g.ints(8), axis=0)
    heads = [g.op("Transpose", g.op("Reshape", g.op("MatMul", x, g.weight(32, 32)),
                                    g.ints(0, 0, 4, 8)), perm=[0, 2, 1, 3]) for _ in range(3)]
    q, k, v = (g.op("Reshape", h, folded) for h in heads)
    low = g.const(np.finfo(np.float32).min)
    row = g.op("Range", g.const(0, np.int64), g.op("Squeeze", seq), g.const(1, np.int64))
    after = g.op("Less", g.op("Unsqueeze", row, g.ints(1)), g.op("Unsqueeze", row, g.ints(0)))
    tokens = g.op("Cast", g.input("mask", ["batch", "seq"], 2), to=TensorProto.BOOL)
    mask = g.op("Where", g.op("Unsqueeze", tokens, g.ints(1, 2)),
                g.op("Where", after, low, g.const(0)), low)
    scores = g.op("MatMul", g.op("Mul", q, g.const(8 ** -0.5)),
                  g.op("Transpose", k, perm=[0, 2, 1]))
    wide = g.op("Reshape", scores, g.op("Concat", batch, g.ints(4), seq, seq, axis=0))
    wide = g.op("Max", g.op("Add", wide, mask), low)
    scores = g.op("Reshape", wide, g.op("Concat", g.op("Mul", batch, g.ints(4)), seq, seq, axis=0))
    y = g.op("MatMul", g.op("Softmax", scores, axis=-1), v)
    y = g.op("Reshape", y, g.op("Concat", batch, g.ints(4), seq, g.ints(8), axis=0))
    return [g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3]), g.ints(0, 0, 32))]


@form("MultiHeadAttention", "!Softmax", "!Max", contrib=True)
def attention_floored_contrib(g):
    return floored(g)


@form("Attention", "!Softmax", "!Max", opset=23)
def attention_floored(g):
    return floored(g)


# ---- running

def run(name, scratch):
    """"" when all is well; else what is wrong."""
    build, wanted, opset, contrib = FORMS[name]
    folder, written = scratch / name, scratch / f"{name}.onnx"
    folder.mkdir()
    net = Net(opset)
    onnx.save(net.model(*build(net)), folder / "model.onnx")
    np.savez(folder / "inputs.npz", **net.feeds)
    options = ["--contrib"] if contrib else []
    again = scratch / "again.onnx"
    for source, target in ((folder / "model.onnx", written), (written, again)):
        done = subprocess.run([TOOL, source, *options, "-q", "-o", target], capture_output=True,
                              text=True, check=False)
        if done.returncode:
            return done.stderr.strip()
    if written.read_bytes() != again.read_bytes():
        return "a second run changes it"
    kinds = [n.op_type for n in onnx.load(written).graph.node]
    for op_type in wanted:
        if (op_type.lstrip("!") in kinds) == op_type.startswith("!"):
            return f"{op_type} is wanted, it has {' '.join(kinds)}"
    result = check(written, folder)
    return "onnxruntime doesn't run it" if result is None else result


def main():
    passed = failed = 0
    unknown = [name for name in sys.argv[1:] if name not in FORMS]
    if unknown:
        sys.exit(f"check_forms.py: no form '{unknown[0]}'; there are: {', '.join(FORMS)}")
    with tempfile.TemporaryDirectory() as scratch:
        for name in sys.argv[1:] or FORMS:
            why = run(name, pathlib.Path(scratch))
            if why:
                failed += 1
                print(f"not ok {name}: {why}")
            passed += not why
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
