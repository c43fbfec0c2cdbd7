"""Node tests for what ONNX's own can't ask of a provider, as folders that tests/onnx/conformance runs.

usage: make_provider_cases.py CONFORMANCE OUT

Two kinds. Tests of ONNX whose shapes, axes, indices or bounds are inputs of the graph, with these as constants: that
is how models have them, and a provider wants to know them when it makes its plan. And operators of com.microsoft,
casts and forms that have no test: the expected values are onnxruntime's.
"""
import collections
import json
import pathlib
import shutil
import sys

import numpy as np
import onnx
import onnx.reference
import onnxruntime
import provider_pyramid
import rounding
from onnx import TensorProto, helper, numpy_helper

FIXED = ("Pad", "Gather", "Resize", "Slice", "Clip", "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd",
         "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceSumSquare", "Expand", "Reshape", "Squeeze", "Unsqueeze", "Split")
# Tests of ONNX as they are, of what elementwise chains, indices and codes are made of.
KEPT = ("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "RotaryEmbedding", "ArgMax", "ArgMin", "Gather",
        "GatherElements", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal", "And", "Or", "Xor", "Not", "Where",
        "Tile", "Sum", "Max", "Min", "PRelu", "Selu", "Celu", "HardSigmoid", "Softplus", "LSTM", "GRU", "RNN", "Attention",
        "Loop", "Scan", "If")
# Two of ONNX's tests for each element type of these, which have kernels of their own or are parts of chains.
SOME = ("Abs Add AveragePool BatchNormalization Ceil Concat Cos DepthToSpace Div Dropout Elu Erf Exp Flatten Floor Gelu "
        "GlobalAveragePool GlobalMaxPool GroupNormalization HardSwish Identity InstanceNormalization LayerNormalization "
        "LeakyRelu Log LogSoftmax MaxPool Mish Mul Neg Pow RMSNormalization Reciprocal Relu Round Sigmoid Sign Sin Softsign "
        "SpaceToDepth Sqrt Sub Swish Tanh ThresholdedRelu Transpose").split()
TYPES = (TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL)
MS = "com.microsoft"


def write(folder, meta, model, inputs, outputs):
    sets = folder / "test_data_set_0"
    sets.mkdir(parents=True)
    onnx.save(model, folder / "model.onnx")
    (folder / "meta.json").write_text(json.dumps(meta))
    for kind, values in (("input", inputs), ("output", outputs)):
        for i, value in enumerate(values):
            (sets / f"{kind}_{i}.pb").write_bytes(numpy_helper.from_array(value).SerializeToString())


def fix(source, out):
    """The test with all inputs but the first as constants; False where that is no test of floats."""
    meta = json.loads((source / "meta.json").read_text())
    model = onnx.load(source / "model.onnx")
    sets = source / "test_data_set_0"
    if len(model.graph.input) < 2:
        return False
    own, *others = model.graph.input
    if meta["op"] not in FIXED or own.type.tensor_type.elem_type != TensorProto.FLOAT:
        return False
    for i, value in enumerate(others, 1):
        tensor = onnx.load_tensor(sets / f"input_{i}.pb")
        tensor.name = value.name
        model.graph.initializer.append(tensor)
        model.graph.input.remove(value)
    folder = out / (source.name + "_fixed")
    (folder / "test_data_set_0").mkdir(parents=True)
    onnx.save(model, folder / "model.onnx")
    shutil.copy(source / "meta.json", folder)
    for path in (sets / "input_0.pb", *sets.glob("output_*.pb")):
        shutil.copy(path, folder / "test_data_set_0")
    return True


def keep(source, out):
    """The test itself; False where it isn't of these, or is one of many that ask for the same."""
    name = source.name
    op = json.loads((source / "meta.json").read_text())["op"]
    if op not in KEPT or "expanded" in name or ("int16" in name and op != "DequantizeLinear"):
        return False
    shutil.copytree(source, out / name)
    return True


def keep_some(sources, out):
    kept = collections.Counter()
    for source in sources:
        op = json.loads((source / "meta.json").read_text())["op"]
        if op not in SOME or "expanded" in source.name:
            continue
        inputs = onnx.load(source / "model.onnx").graph.input
        kind = inputs[0].type.tensor_type.elem_type if inputs else 0
        if kind in TYPES and kept[op, kind] < 2:
            kept[op, kind] += 1
            shutil.copytree(source, out / source.name)
    return kept.total()


CONTRIB = pathlib.Path(__file__).parents[1] / "onnx/contrib"
CONTRIB_OPS = ("Attention", "MultiHeadAttention", "DecoderMaskedMultiHeadAttention", "GroupQueryAttention",
               "DequantizeLinear")
TRIALS = ("ImageScaler",)  # of ONNX's own domain, in its first versions


def borrow(source, out):
    """A test of com.microsoft, or of a trial; the number of all tokens (total_sequence_length) as a constant, as models compute it of
    shapes."""
    meta = json.loads((source / "meta.json").read_text())
    if meta["op"] not in (CONTRIB_OPS if meta["domain"] == MS else TRIALS):
        return False
    folder = out / source.name
    shutil.copytree(source, folder)
    if meta["op"] != "GroupQueryAttention":
        return True
    model = onnx.load(folder / "model.onnx")
    name = model.graph.node[0].input[6]
    place = [i.name for i in model.graph.input].index(name)
    for path in sorted(folder.glob("test_data_set_*")):
        total = onnx.load_tensor(path / f"input_{place}.pb")
        (path / f"input_{place}.pb").unlink()
        for i in range(place + 1, len(model.graph.input)):
            (path / f"input_{i}.pb").rename(path / f"input_{i - 1}.pb")
    total.name = name
    model.graph.initializer.append(total)
    del model.graph.input[place]
    onnx.save(model, folder / "model.onnx")
    return True


random = np.random.default_rng(21)


def floats(*shape):
    return random.standard_normal(shape).astype(np.float32)


of_later_cases = np.random.default_rng(22)


def fresh(*shape):
    """For cases among older ones, whose numbers stay what they were."""
    return of_later_cases.standard_normal(shape).astype(np.float32)


def small(*shape):
    """Weights whose products keep the size of what they multiply: scores of larger ones are in the dozens, where softmax
    makes of a half's rounding a tenth of a probability."""
    return floats(*shape) * np.float32(0.3)


CASES = [  # name, domain, operator, inputs (constants between |), attributes
    ("fused_conv_relu", MS, "FusedConv", [floats(1, 5, 9, 37), "|", floats(7, 5, 3, 3), floats(7)],
     dict(activation="Relu", pads=[1, 1, 1, 1])),
    ("fused_conv_sum", MS, "FusedConv", [floats(2, 4, 6, 6), "|", floats(8, 4, 1, 1), floats(8), floats(2, 8, 6, 6)],
     dict(activation="Relu")),
    ("fused_conv_leaky", MS, "FusedConv", [floats(1, 6, 20, 20), "|", floats(9, 2, 3, 5), floats(9)],
     dict(activation="LeakyRelu", activation_params=[0.1], group=3, strides=[2, 1], dilations=[1, 2])),
    ("fused_conv_clip", MS, "FusedConv", [floats(1, 16, 15, 15), "|", floats(16, 1, 3, 3), floats(16)],
     dict(activation="Clip", activation_params=[0.0, 6.0], group=16, strides=[2, 2], pads=[1, 1, 0, 0])),
    ("conv_deep", "", "Conv", [floats(1, 70, 7, 7), "|", floats(33, 70, 3, 3), floats(33)], dict(pads=[1, 1, 1, 1])),
    # Small planes: of groups, with strides, with a sum, of weights that are computed.
    ("conv_small", "", "Conv", [fresh(2, 26, 9, 9), "|", fresh(70, 13, 3, 3), fresh(70)],
     dict(group=2, pads=[1, 1, 1, 1])),
    ("conv_small_apart", "", "Conv", [fresh(1, 150, 40, 17), "|", fresh(64, 150, 2, 1)],
     dict(strides=[3, 2], dilations=[2, 1], pads=[1, 0, 0, 0])),
    ("conv_small_sum", MS, "FusedConv", [fresh(1, 300, 5, 5), "|", fresh(40, 300, 1, 1), fresh(40), fresh(1, 40, 5, 5)],
     dict(activation="LeakyRelu", activation_params=[0.1])),
    ("conv_small_computed", "", "Conv", [fresh(1, 20, 3, 13), fresh(32, 20, 3, 1)], {}),
    ("conv_computed", "", "Conv", [floats(1, 5, 40), floats(12, 5, 4)], dict(strides=[3])),
    ("conv_volume", "", "Conv", [floats(2, 3, 4, 6, 40), "|", floats(5, 3, 2, 3, 3)],
     dict(pads=[0, 1, 1, 1, 1, 1], strides=[1, 2, 1])),
    ("depthwise_same", "", "Conv", [fresh(2, 5, 7, 37), "|", fresh(5, 1, 3, 3), fresh(5)],
     dict(group=5, pads=[1, 1, 1, 1])),
    ("depthwise_halved", "", "Conv", [fresh(1, 6, 13, 35), "|", fresh(6, 1, 5, 5)],
     dict(group=6, strides=[2, 2], pads=[2, 1, 2, 3])),
    ("depthwise_apart", "", "Conv", [fresh(1, 3, 30, 41), "|", fresh(3, 1, 3, 2), fresh(3)],
     dict(group=3, strides=[4, 3], dilations=[2, 5], pads=[0, 3, 5, 0])),
    ("depthwise_several", "", "Conv", [fresh(2, 4, 7, 9), "|", fresh(12, 1, 3, 3), fresh(12)],
     dict(group=4, auto_pad="SAME_LOWER")),
    ("depthwise_line", "", "Conv", [fresh(2, 6, 40), "|", fresh(6, 1, 5)],
     dict(group=6, strides=[2], dilations=[2], pads=[3, 4])),
    ("depthwise_one", "", "Conv", [fresh(1, 1, 60, 8), "|", fresh(9, 1, 3, 3)], dict(pads=[2, 0, 2, 9])),
    # Rows of a window for which an item has no room.
    ("depthwise_wide", "", "Conv", [fresh(1, 2, 4, 1500), "|", fresh(2, 1, 3, 3)], dict(group=2, pads=[1, 1, 1, 1])),
    ("depthwise_tall", "", "Conv", [fresh(1, 3, 25, 5), "|", fresh(3, 1, 17, 3)], dict(group=3, pads=[8, 1, 8, 1])),
    ("depthwise_volume", "", "Conv", [fresh(1, 3, 4, 5, 20), "|", fresh(3, 1, 2, 3, 3)],
     dict(group=3, pads=[1, 1, 1, 0, 1, 1])),
    ("conv_transpose_groups", "", "ConvTranspose", [floats(2, 4, 5, 6), "|", floats(4, 3, 3, 3), floats(6)],
     dict(group=2, strides=[2, 2], pads=[1, 0, 1, 1], output_padding=[1, 0])),
    ("gemm_wide", "", "Gemm", [floats(37, 300), "|", floats(101, 300), floats(101)], dict(transB=1, alpha=0.5, beta=2.0)),
    ("gemm_turned", "", "Gemm", [floats(130, 19), floats(130, 64), floats(19, 1)], dict(transA=1)),
    ("matmul_batches", "", "MatMul", [floats(3, 2, 17, 140), floats(2, 140, 33)], {}),
    ("fused_gemm", MS, "FusedGemm", [floats(9, 40), "|", floats(40, 70), floats(70)], dict(activation="Relu")),
    ("fused_matmul", MS, "FusedMatMul", [floats(2, 3, 8, 16), floats(2, 3, 24, 16)], dict(transB=1, alpha=0.25)),
    ("bias_gelu", MS, "BiasGelu", [floats(3, 50), floats(50)], {}),
    ("fast_gelu", MS, "FastGelu", [floats(3, 50)], {}),
    ("gelu", MS, "Gelu", [floats(3, 50)], {}),
    ("quick_gelu", MS, "QuickGelu", [floats(3, 50)], dict(alpha=1.3)),
    ("simplified_norm", "", "SimplifiedLayerNormalization", [floats(5, 40), "|", floats(40)], dict(epsilon=1e-5)),
    ("skip_norm", MS, "SkipLayerNormalization", [floats(2, 5, 40), floats(2, 5, 40), floats(40), floats(40), floats(40)],
     dict(epsilon=1e-5)),
    ("skip_rms", MS, "SkipSimplifiedLayerNormalization", [floats(2, 5, 40), floats(2, 5, 40), floats(40)],
     dict(epsilon=1e-5)),
    ("fused_attention", MS, "Attention", [floats(2, 9, 24), "|", small(24, 72), floats(72)], dict(num_heads=3)),
    ("fused_attention_causal", MS, "Attention", [floats(2, 9, 24), "|", small(24, 72), floats(72)],
     dict(num_heads=3, unidirectional=1)),
    ("fused_attention_mask", MS, "Attention", [floats(2, 5, 24), "|", small(24, 72), floats(72),
                                               np.array([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]], np.int32)], dict(num_heads=3)),
    ("multi_head", MS, "MultiHeadAttention", [floats(2, 7, 32), floats(2, 9, 32), floats(2, 9, 32)], dict(num_heads=4)),
    ("resize_linear", "", "Resize", [floats(1, 3, 11, 13), "|", None, np.array([1, 1, 1.7, 0.6], np.float32)],
     dict(mode="linear")),
    ("softmax_axis", "", "Softmax", [floats(2, 70, 5)], dict(axis=1)),
    ("reduce_middle", "", "ReduceMean", [floats(3, 150, 7, 2), "|", np.array([1, 3], np.int64)], dict(keepdims=0)),
    *((f"cast_{np.dtype(a).name}_{np.dtype(b).name}", "", "Cast", [(floats(2, 30) * 9).astype(a)],
       dict(to=helper.np_dtype_to_tensor_dtype(np.dtype(b))))
      for a, b in [(np.float32, np.int32), (np.float32, np.int64), (np.float32, np.bool_), (np.int32, np.float32),
                   (np.int64, np.float32), (np.bool_, np.float32), (np.int64, np.int32), (np.int32, np.int64)]),
]


def results_of(model, values):
    if model.opset_import[0].version > 18:  # that opset is younger than onnxruntime's kernels
        feeds = {i.name: v for i, v in zip(model.graph.input, values)}
        return onnx.reference.ReferenceEvaluator(model).run(None, feeds)
    options = onnxruntime.SessionOptions()
    if values[0].dtype == np.uint8:  # else sums of two products of bytes saturate where there is no VNNI
        options.add_session_config_entry("session.x64quantprecision", "1")
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {i.name: v for i, v in zip(session.get_inputs(), values)})


def write_expected(folder, model, op, domain, values, like=None, like_values=None):
    outputs = results_of(like or model, like_values or values)
    meta = dict(op=op, domain=domain or "ai.onnx", kind="node", folder="", rtol=1e-3, atol=1e-5)
    write(folder, meta, model, values, outputs)


def chain_model(out):
    """What one kernel computes: operands of the result's shape, spread along rows and columns, one element; a result
    that somebody else reads, too; numbers of four types on the way."""
    nodes = [("Add", ["x", "row"], "a"), ("Sigmoid", ["a"], "s"), ("Mul", ["x", "s"], "m"), ("Clip", ["m", "low", ""], "c"),
             ("Max", ["c", "column", "one"], "most"), ("Less", ["most", "a"], "less"), ("Not", ["less"], "more"),
             ("Cast", ["more"], "counts", dict(to=TensorProto.INT64)), ("Add", ["counts", "two"], "sum"),
             ("Cast", ["sum"], "back", dict(to=TensorProto.FLOAT)), ("Where", ["less", "back", "s"], "picked"),
             ("Sub", ["picked", "m"], "y"), ("ReduceMean", ["m"], "mean", dict(keepdims=1))]
    constants = dict(row=floats(37), column=floats(5, 1), one=floats(1), low=np.float32(-0.1), two=np.int64(2))
    graph = helper.make_graph([helper.make_node(n[0], n[1], [n[2]], **(n[3] if len(n) > 3 else {})) for n in nodes], "chain",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 5, 37])],
                              [helper.make_tensor_value_info(v, TensorProto.FLOAT, None) for v in ("y", "mean")],
                              [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()])
    model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])
    write_expected(out / "chain_of_types", model, "Where", "", [floats(3, 5, 37)])


def siblings_model(out):
    """Products of one value: three with weights of one shape, which one launch makes, beside others with an activation
    behind them, that are results, of another width, or of rows that no part of a buffer can begin with."""
    def some(*shape):
        return of_later_cases.standard_normal(shape).astype(np.float32)
    widths = dict(q=256, k=256, v=256, most=256, given=256, wide=512, a=33, b=33, fourth=256)
    nodes = [helper.make_node("MatMul", ["x", f"w_{name}"], [name]) for name in widths]
    nodes += [helper.make_node(op, ins, [out]) for op, ins, out in [
        ("Relu", ["most"], "relu"), ("Mul", ["k", "v"], "kv"), ("Add", ["q", "kv"], "qkv"), ("Add", ["a", "b"], "odd"),
        ("Sub", ["qkv", "fourth"], "y"), ("Add", ["relu", "y"], "z"), ("ReduceSum", ["wide"], "sum"), ("Neg", ["odd"], "less")]]
    results = ["z", "given", "sum", "less"]
    graph = helper.make_graph(nodes, "siblings", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 5, 70])],
                              [helper.make_tensor_value_info(v, TensorProto.FLOAT, None) for v in results],
                              [numpy_helper.from_array(some(70, n) / 8, f"w_{name}") for name, n in widths.items()])
    model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])
    write_expected(out / "products_of_one_value", model, "MatMul", "", [some(2, 5, 70)])


def norms_model(out):
    """Norms of the rows that a product makes, by its items: with a second and a third term, a bias, their sum as a result,
    of few rows, of several tiles and of part of one; and norms that stay launches: of a product that others read, of two
    axes, of a term that is made later, with means as results."""
    def some(*shape):
        return of_later_cases.standard_normal(shape).astype(np.float32)
    nodes, weights = [], {}

    def add(op, inputs, outputs, **attributes):
        domain = MS if op.startswith("Skip") else ""
        nodes.append(helper.make_node(op, inputs, outputs, domain=domain, **attributes))

    def weight(*shape):
        weights[f"w{len(weights)}"] = some(*shape) / 8
        return f"w{len(weights) - 1}"

    add("MatMul", ["x", weight(70, 41)], ["a"])
    add("LayerNormalization", ["a", weight(41), weight(41)], ["an"], axis=-1)
    add("Gemm", ["rows", weight(24, 41), weight(41)], ["b"])
    add("LayerNormalization", ["b", weight(41)], ["bn"], axis=1, epsilon=1e-3)
    add("MatMul", ["an", weight(41, 41)], ["c"])
    add("SkipLayerNormalization", ["c", "an", weight(41), weight(41), weight(41)], ["cn", "", "", "cs"])
    add("MatMul", ["cn", weight(41, 41)], ["d"])
    add("SkipLayerNormalization", ["cs", "d", weight(41)], ["dn"])
    add("MatMul", ["dn", weight(41, 41)], ["e"])
    add("SkipSimplifiedLayerNormalization", ["e", "dn", weight(41), weight(41)], ["en", "", "", "es"])
    add("MatMul", ["en", weight(41, 200)], ["f"])
    add("SimplifiedLayerNormalization", ["f", weight(200)], ["fn"], axis=-1)
    add("MatMul", ["en", weight(41, 24)], ["g"])  # who reads it besides sees it as it was
    add("LayerNormalization", ["g", weight(24)], ["gn"], axis=-1)
    add("Neg", ["g"], ["gm"])
    add("MatMul", ["en", weight(41, 24)], ["h"])
    add("LayerNormalization", ["h", weight(3, 24)], ["hn"], axis=-2)
    add("MatMul", ["en", weight(41, 24)], ["i"])
    add("MatMul", ["fn", weight(200, 24)], ["later"])
    add("SkipLayerNormalization", ["i", "later", weight(24)], ["in"])
    add("MatMul", ["gn", weight(24, 33)], ["j"])
    add("LayerNormalization", ["j", weight(33)], ["jn", "jm"], axis=-1)
    results = ["bn", "dn", "es", "fn", "gm", "hn", "in", "jn", "jm"]
    graph = helper.make_graph(nodes, "norms", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, 70]),
                                               helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["M", 24])],
                              [helper.make_tensor_value_info(v, TensorProto.FLOAT, None) for v in results],
                              [numpy_helper.from_array(v, k) for k, v in weights.items()])
    model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(MS, 1)])
    for name, n, m in (("few", 2, 1), ("many", 117, 8)):
        write_expected(out / f"norms_of_products_{name}", model, "LayerNormalization", "", [some(n, 3, 70), some(m, 24)])


ACTIVATIONS = [("Relu", "", {}), ("LeakyRelu", "", dict(alpha=0.2)), ("Clip", "", {}), ("Sigmoid", "", {}), ("Tanh", "", {}),
               ("HardSigmoid", "", dict(alpha=0.3)), ("Gelu", MS, {}), ("HardSwish", "", {}), ("QuickGelu", MS, dict(alpha=1.7)),
               ("FastGelu", MS, {}), ("Softplus", "", {})]


def joined_model(out):
    """What needs no launch of its own: activations behind convolutions, depthwise ones and products (each kind, with sizes
    that leave whole tiles and rests), results that lie in a Concat's, one within another, at places where memory may be
    divided and where it mayn't; slices of a value. What others read stays: a result before its activation, a part that
    leaves the graph, one that is joined twice."""
    nodes, weights, joined = [], {}, []

    def add(op, inputs, output, domain="", **attributes):
        nodes.append(helper.make_node(op, inputs, [output], domain=domain, **attributes))
        return output

    def weight(name, *shape):
        weights[name] = floats(*shape) * np.float32(0.3)
        return name

    for i, (op, domain, attributes) in enumerate(ACTIVATIONS):
        bounds = ["low", "high"] if op == "Clip" else []
        c = add("Conv", ["x", weight(f"w{i}", 16 + i, 8, 3, 3), weight(f"b{i}", 16 + i)], f"c{i}", pads=[1, 1, 1, 1])
        a = add(op, [c, *bounds], f"a{i}", domain, **attributes)
        d = add("Conv", ["x", weight(f"v{i}", 8, 1, 3, 3)], f"d{i}", pads=[1, 1, 1, 1], group=8)
        joined += [a, add(op, [d, *bounds], f"e{i}", domain, **attributes)]
        m = add("MatMul", ["rows", weight(f"m{i}", 24, 70)], f"m{i}y")
        add(op, [m, *bounds], f"n{i}", domain, **attributes)
    inner = add("Concat", joined[:5], "inner", axis=1)
    outer = add("Concat", ["x", inner, *joined[5:]], "outer", axis=1)
    add("Concat", [joined[6], joined[6], inner], "again", axis=1)
    add("Sigmoid", ["c3"], "also")
    add("Slice", [outer, "from", "to", "axis"], "slice")
    add("Relu", ["slice"], "sliced")
    nodes.append(helper.make_node("Split", [inner], ["left", "right"], axis=1, num_outputs=2))
    add("Neg", ["left"], "less")
    add("Concat", ["right", "less"], "turned", axis=1)
    weights |= dict(low=np.float32(-0.4), high=np.float32(0.6))
    weights |= {"from": np.array([16]), "to": np.array([40]), "axis": np.array([1])}
    results = ["outer", "again", "also", "sliced", "turned", joined[8], *(f"n{i}" for i in range(len(ACTIVATIONS)))]
    graph = helper.make_graph(nodes, "joined", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 8, 12, 16]),
                                                helper.make_tensor_value_info("rows", TensorProto.FLOAT, [1, 37, 24])],
                              [helper.make_tensor_value_info(v, TensorProto.FLOAT, None) for v in results],
                              [numpy_helper.from_array(np.asarray(v), k) for k, v in weights.items()])
    model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid(MS, 1)])
    write_expected(out / "joined_and_activated", model, "Concat", "", [floats(1, 8, 12, 16), floats(1, 37, 24)])


def few_bits(bits, zeros, k=70, n=19, block=32):
    blocks = -(-k // block)
    codes = random.integers(0, 256, (n, blocks, block * bits // 8), np.uint8)
    scale = np.abs(floats(n, blocks)) * 0.1
    zero = [random.integers(0, 256, (n, -(-blocks * bits // 8)), np.uint8)] if zeros else []
    return [floats(3, 11, k), "|", codes, scale, *zero], dict(K=k, N=n, bits=bits, block_size=block)


def turned(*shape):
    angles = floats(*shape)
    return [np.cos(angles), np.sin(angles)]


MORE = [
    ("nbits_4", MS, "MatMulNBits", *few_bits(4, True)),
    ("nbits_4_middle", MS, "MatMulNBits", *few_bits(4, False, 256, 40, 128)),
    ("nbits_8", MS, "MatMulNBits", *few_bits(8, True, 64)),
    ("rotary_positions", MS, "RotaryEmbedding",
     [floats(2, 3, 5, 8), np.array([[0, 1, 2, 3, 4], [6, 5, 3, 1, 0]], np.int64), "|", *turned(9, 4)], {}),
    ("rotary_from", MS, "RotaryEmbedding", [floats(2, 5, 24), np.array([3], np.int64), "|", *turned(9, 4)],
     dict(interleaved=1)),
    ("embed_norm", MS, "EmbedLayerNormalization",
     [np.array([[3, 0, 6], [2, 2, 1]], np.int32), np.array([[0, 1, 1], [0, 0, 1]], np.int32), "|", floats(7, 16),
      floats(4, 16), floats(2, 16), floats(16), floats(16)], {}),
    ("gather_middle", "", "Gather", [floats(3, 7, 20), np.array([[6, -1], [0, 3]], np.int64)], dict(axis=1)),
    ("gather_flags", "", "Gather", [np.arange(15).reshape(5, 3) % 4 == 1, np.array([[4, -2, 0]], np.int64)],
     dict(axis=0)),
    ("gather_tokens", "", "Gather", [np.arange(54).reshape(2, 9, 3) << 33, np.array([8, -9], np.int32)], dict(axis=1)),
    ("gather_places", "", "Gather", [np.arange(9, dtype=np.int32) - 4, np.array(-3, np.int64)], dict(axis=0)),
    ("gather_flags_known", "", "Gather", [np.arange(15).reshape(5, 3) % 4 == 1, "|", np.array([2, 0], np.int64)],
     dict(axis=1)),
    ("cum_sum", "", "CumSum", [floats(3, 9, 4), "|", np.array(1, np.int64)], dict(exclusive=1, reverse=1)),
    ("tile", "", "Tile", [floats(2, 3, 5), "|", np.array([2, 1, 3], np.int64)], {}),
]


def ints(*numbers, kind=np.int32):
    return np.array(numbers, kind)


def grouped(tokens, total, lengths, past=0, turned_by=None, packed=False, more=(), size=16, **attributes):
    """GroupQueryAttention of four heads on two, over a cache of `past` rows; `more`: inputs behind the
    tables."""
    batch, heads, kv_heads = len(lengths), 4, 2
    width = (heads + 2 * kv_heads if packed else heads) * size
    keys = [None, None] if packed else [floats(batch, tokens, kv_heads * size) for _ in range(2)]
    cache = [floats(batch, kv_heads, past, size) for _ in range(2)] if past else [None, None]
    tables = list(turned_by) if turned_by else [None, None]
    return ([floats(batch, tokens, width), *keys, *cache, ints(*(n - 1 for n in lengths)), "|", one(total, np.int32),
             *tables, *more],
            dict(num_heads=heads, kv_num_heads=kv_heads, do_rotary=int(turned_by is not None), outputs=3, **attributes))


def attention_cases():
    joined, keys = floats(2, 6, 4, 3, 8), floats(2, 7, 4, 2, 8)
    query, apart = floats(2, 6, 32), [keys[:, :, :, i].reshape(2, 7, 32) for i in range(2)]
    return [
        ("packed_past", MS, "Attention", [floats(2, 5, 24), "|", floats(24, 72), floats(72), "|", None, floats(2, 2, 3, 4, 8)],
         dict(num_heads=3, unidirectional=1, outputs=2)),
        ("packed_sizes", MS, "Attention", [floats(2, 5, 24), "|", floats(24, 18 + 18 + 30) * np.float32(0.3), floats(66)],
         dict(num_heads=3, qkv_hidden_sizes=[18, 18, 30])),
        ("multi_past", MS, "MultiHeadAttention", [floats(2, 3, 32), floats(2, 3, 32), floats(2, 3, 32), None, None, None,
                                                  floats(2, 4, 5, 8), floats(2, 4, 5, 8)], dict(num_heads=4, outputs=3)),
        ("multi_bias_past_causal", MS, "MultiHeadAttention",
         [floats(1, 3, 32), floats(1, 3, 32), floats(1, 3, 32), floats(96), None, None, floats(1, 4, 5, 8),
          floats(1, 4, 5, 8)], dict(num_heads=4, unidirectional=1, outputs=3)),
        ("multi_one_input", MS, "MultiHeadAttention", [joined],
         dict(num_heads=4, like=[joined[:, :, :, i].reshape(2, 6, 32) for i in range(3)])),
        ("multi_keys_and_values", MS, "MultiHeadAttention", [query, keys],
         dict(num_heads=4, like=[query, *apart])),
        ("multi_lengths", MS, "MultiHeadAttention", [floats(2, 6, 32), floats(2, 7, 32), floats(2, 7, 32), None, ints(4, 7)],
         dict(num_heads=4)),
        ("multi_ends_and_bias", MS, "MultiHeadAttention",
         [floats(2, 6, 32), floats(2, 7, 32), floats(2, 7, 32), floats(96),
          np.array([[1, 1, 0, 1, 1, 1, 0], [1, 1, 1, 1, 0, 0, 0]], np.int32), floats(1, 4, 6, 7)], dict(num_heads=4)),
        ("group_prompt", MS, "GroupQueryAttention", *grouped(5, 5, [5, 5])),
        ("group_prompt_packed_turned", MS, "GroupQueryAttention", *grouped(5, 5, [5, 5], packed=True, turned_by=turned(9, 8))),
        ("group_step", MS, "GroupQueryAttention", *grouped(1, 8, [8, 6], past=7, turned_by=turned(9, 8),
                                                           rotary_interleaved=1)),
        ("group_steps_of_a_buffer", MS, "GroupQueryAttention", *grouped(3, 8, [8], past=16, turned_by=turned(20, 8),
                                                                         local_window_size=4)),
        ("group_part_turned", MS, "GroupQueryAttention", *grouped(1, 8, [8, 8], past=7, turned_by=turned(9, 8), size=32)),
        ("group_places", MS, "GroupQueryAttention",
         *grouped(2, 8, [8], past=6, turned_by=turned(20, 8), more=[np.array([[11, 2]], np.int64)])),
        ("group_added", MS, "GroupQueryAttention",
         *grouped(2, 8, [8], past=6, more=[None, floats(1, 4, 2, 8)], softcap=3.0, scale=0.7)),
    ]


def codes(kind, *shape):
    return random.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, shape).astype(kind)


def scales(*shape):
    return (random.random(shape) * 0.02 + 0.001).astype(np.float32)


def one(number, kind=np.float32):
    return np.array(number, kind)


U8, I8 = np.uint8, np.int8


def quantized_conv(x, w, group=1, kind=U8, w_kind=I8, bias=True, **attributes):
    maps, zero = w[0], 131 if kind == U8 else -3
    w_zero = np.zeros(maps, w_kind) if w_kind == I8 else one(119, U8)
    w_scale = scales(maps) if w_kind == I8 else one(0.01)
    more = [random.integers(-900, 900, maps).astype(np.int32)] if bias else []
    return [codes(kind, *x), "|", one(0.02), one(zero, kind), codes(w_kind, *w), w_scale, w_zero, one(0.37),
            one(zero - 9, kind), *more], dict(group=group, **attributes)


BYTES = [  # products and sums of codes: the results have the type of the last, or int32
    ("qconv_deep", "", "QLinearConv", *quantized_conv((2, 37, 9, 11), (35, 37, 3, 3), pads=[1, 1, 1, 1])),
    ("qconv_strided", "", "QLinearConv", *quantized_conv((1, 6, 15, 14), (21, 6, 3, 5), strides=[2, 3], dilations=[2, 1])),
    ("qconv_groups", "", "QLinearConv", *quantized_conv((2, 10, 8, 8), (34, 5, 1, 1), group=2, kind=I8, bias=False)),
    ("qconv_unsigned", "", "QLinearConv", *quantized_conv((1, 5, 8, 8), (18, 5, 3, 3), w_kind=U8, pads=[0, 2, 1, 0])),
    ("qconv_by_channel", "", "QLinearConv", *quantized_conv((1, 12, 17, 19), (12, 1, 3, 3), group=12, pads=[1, 1, 0, 1],
                                                            strides=[2, 1])),
    ("qconv_line", "", "QLinearConv", *quantized_conv((2, 4, 41), (3, 4, 5), kind=I8, pads=[2, 1])),
    ("conv_integer", "", "ConvInteger", [codes(U8, 1, 7, 9, 9), "|", codes(I8, 20, 7, 3, 3), one(77, U8), one(0, I8)],
     dict(pads=[1, 0, 1, 0])),
    ("conv_integer_by_channel", "", "ConvInteger", [codes(U8, 2, 6, 9, 9), "|", codes(U8, 6, 1, 3, 3), one(77, U8),
                                                    one(200, U8)], dict(group=6)),
    ("matmul_integer", "", "MatMulInteger", [codes(U8, 3, 5, 70), "|", codes(I8, 70, 33), one(5, U8), one(0, I8)], {}),
    ("matmul_integer_zeros", "", "MatMulInteger", [codes(I8, 9, 13), "|", codes(U8, 13, 8), one(-7, I8), one(130, U8)], {}),
    ("qmatmul", "", "QLinearMatMul", [codes(U8, 2, 9, 41), "|", one(0.02), one(120, U8), codes(I8, 41, 50), one(0.013),
                                      one(0, I8), one(0.3), one(131, U8)], {}),
    ("qgemm", MS, "QGemm", [codes(U8, 9, 130), "|", one(0.02), one(120, U8), codes(I8, 40, 130), scales(40),
                            np.zeros(40, I8), random.integers(-900, 900, 40).astype(np.int32), one(0.4), one(100, U8)],
     dict(transB=1, alpha=1.0)),
    ("quantize_ms", MS, "QuantizeLinear", [floats(3, 50), "|", one(0.02), one(120, U8)], {}),
    ("dequantize_ms", MS, "DequantizeLinear", [codes(U8, 3, 50), "|", one(0.02), one(120, U8)], {}),
    ("qadd", MS, "QLinearAdd", [codes(U8, 3, 90), "|", one(0.021), one(120, U8), codes(U8, 3, 90), one(0.013), one(99, U8),
                                one(0.033), one(140, U8)], {}),
]


COMPARES = ("Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal")
NUMBERS = ("Add", "Sub", "Mul", "Max", "Min")
ALIASES = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout")
MOVES = ("Transpose", "Concat", "Split", "Slice", "MaxPool")


def moved_cases():
    """Codes and flags that only change places, and the greatest of windows of codes."""
    for kind in (np.int8, np.uint8, np.bool_):
        def some(*shape):
            return of_later_cases.integers(*{np.int8: (-128, 128), np.uint8: (0, 256)}.get(kind, (0, 2)), shape).astype(kind)
        name = np.dtype(kind).name
        yield f"moved_transpose_{name}", "", "Transpose", [some(3, 70, 5)], dict(perm=[2, 0, 1])
        yield f"moved_concat_{name}", "", "Concat", [some(2, 3, 40), some(2, 5, 40)], dict(axis=1)
        yield f"moved_concat_rows_{name}", "", "Concat", [some(4, 65), some(3, 65)], dict(axis=0)
        yield (f"moved_split_{name}", "", "Split", [some(4, 9, 30), "|", np.array([4, 5])], dict(axis=1, outputs=2))
        yield (f"moved_split_rows_{name}", "", "Split", [some(6, 128), "|", np.array([1, 2, 3])], dict(axis=0, outputs=3))
        yield f"moved_rows_{name}", "", "Gather", [some(9, 33), np.array([[4, -9], [8, 0]], np.int64)], dict(axis=0)
        yield (f"moved_slice_{name}", "", "Slice", [some(6, 50), "|", np.array([1, 45]), np.array([6, 2]), np.array([0, 1]),
                                                    np.array([2, -3])], {})
        if kind is not np.bool_:
            yield (f"moved_pool_{name}", "", "MaxPool", [some(2, 3, 13, 17)],
                   dict(kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1]))
            yield (f"moved_pool_apart_{name}", "", "MaxPool", [some(1, 2, 40)],
                   dict(kernel_shape=[4], strides=[3], dilations=[2], pads=[2, 3]))


def typed_cases():
    """Operators that ONNX's tests have for few of the element types that kernels are for."""
    for kind in (np.float32, np.int32, np.int64):
        for op in COMPARES + NUMBERS:
            yield (f"of_types_{op}_{np.dtype(kind).name}".lower(), "", op,
                   [random.integers(-3, 4, shape).astype(kind) for shape in ((3, 1, 50), (4, 50))], {})
    for kind in (np.float32, np.int32, np.int64, np.bool_):
        if kind is not np.bool_:  # which onnxruntime has no kernel for
            yield (f"of_types_where_{np.dtype(kind).name}", "", "Where",
                   [floats(3, 40) > 0, (floats(3, 40) * 3).astype(kind), (floats(40) * 3).astype(kind)], {})
        for op in ALIASES:
            shape = {"Reshape": ints(7, 9, kind=np.int64), "Squeeze": ints(1, kind=np.int64),
                     "Unsqueeze": ints(0, kind=np.int64)}.get(op)
            if op == "Dropout" and kind is not np.float32:
                continue
            yield (f"of_types_{op}_{np.dtype(kind).name}".lower(), "", op,
                   [(floats(9, 1, 7) * 3).astype(kind), *(["|", shape] if shape is not None else [])], {})
    for kind in (np.int8, np.int32):
        zero = [one(0, kind)] if kind is np.int32 else [one(-7, kind)]
        yield (f"of_types_dequantize_{np.dtype(kind).name}", "", "DequantizeLinear", [codes(kind, 3, 50) // 100, "|", one(0.02), *zero], {})


# Beside onnx's own, which have no mask that is shorter than the keys by all but one.
KEYS = [("attention_mask_of_one_key", "", "Attention", [floats(1, 2, 3, 8), floats(1, 2, 4, 8), floats(1, 2, 4, 8),
                                                       floats(3, 1)], dict(opset=23))]


def long_cases():
    """More keys than a kernel of their own takes at once, on processors: products and softmax by themselves."""
    def some(*shape):
        return (of_later_cases.standard_normal(shape) * 0.5).astype(np.float32)
    mask = np.ones((2, 140), np.int32)
    mask[0, 131:] = mask[1, :7] = 0
    return [
        ("long_multi", MS, "MultiHeadAttention", [some(2, 9, 32), some(2, 140, 32), some(2, 140, 32)], dict(num_heads=4)),
        ("long_multi_masked", MS, "MultiHeadAttention",
         [some(2, 9, 32), some(2, 140, 32), some(2, 140, 32), some(96), mask, some(1, 4, 9, 140)], dict(num_heads=4)),
        ("long_packed_causal", MS, "Attention", [some(1, 150, 24), "|", some(24, 72), some(72)],
         dict(num_heads=3, unidirectional=1)),
        ("long_group", MS, "GroupQueryAttention",
         [some(1, 3, 64), some(1, 3, 32), some(1, 3, 32), some(1, 2, 140, 16), some(1, 2, 140, 16), ints(142), "|",
          one(143, np.int32)], dict(num_heads=4, kv_num_heads=2, outputs=3)),
        ("long_attention", "", "Attention", [some(1, 4, 9, 8), some(1, 2, 200, 8), some(1, 2, 200, 24)], dict(opset=23)),
    ]


def mean_cases():
    return [(f"qmean_{kind.__name__}", MS, "QLinearGlobalAveragePool",
             [of_later_cases.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, (2, 5, 7, 9)).astype(kind), "|", one(0.02),
              one(zero, kind), one(0.011), one(zero + 5, kind)], {}) for kind, zero in ((U8, 119), (I8, -7))]


def rows_cases():
    """More rows than an item makes: several items have as many each, and the last one a rest."""
    return [("conv_rows", "", "Conv", [fresh(1, 3, 9, 41), "|", fresh(290, 3, 3, 3), fresh(290)], dict(pads=[1, 1, 1, 1])),
            ("gemm_rows", "", "Gemm", [fresh(290, 133), "|", fresh(133, 300)], {})]


def result_kind(op, inputs, attributes):
    if op == "Cast":
        return attributes["to"]
    if op in ("ConvInteger", "MatMulInteger"):
        return TensorProto.INT32
    if op in COMPARES:
        return TensorProto.BOOL
    if op in NUMBERS + ALIASES + MOVES + ("Where", "Gather"):
        return helper.np_dtype_to_tensor_dtype(inputs[op == "Where"].dtype)
    if op == "QuantizeLinear":
        return helper.np_dtype_to_tensor_dtype(inputs[-1].dtype)
    return helper.np_dtype_to_tensor_dtype(inputs[0].dtype) if op[0] == "Q" and op != "QuickGelu" else TensorProto.FLOAT


def make_model(name, domain, op, inputs, outputs=1, opset=18, **attributes):
    """The model of one node, and the values of its inputs."""
    names, graph_inputs, constants, values, fixed = [], [], [], [], False
    for i, value in enumerate(inputs):
        if isinstance(value, str):
            fixed = not fixed
            continue
        names.append("" if value is None else f"x{i}")
        if value is None:
            continue
        if fixed:
            constants.append(numpy_helper.from_array(value, names[-1]))
        else:
            values.append(value)
            graph_inputs.append(helper.make_tensor_value_info(
                names[-1], helper.np_dtype_to_tensor_dtype(value.dtype), value.shape))
    kind = result_kind(op, inputs, attributes)
    results = [helper.make_tensor_value_info(f"y{i or ''}", kind, None) for i in range(outputs)]
    extra = [""] if op == "EmbedLayerNormalization" else []
    node = helper.make_node(op, names, [r.name for r in results] + extra, domain=domain, **attributes)
    graph = helper.make_graph([node], name, graph_inputs, results, constants)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(MS, 1)]
    return helper.make_model(graph, ir_version=9, opset_imports=opsets), values


def make_case(out, name, domain, op, inputs, attributes):
    """attributes may tell `like`: inputs of the same meaning in a form that onnxruntime has a kernel for."""
    attributes = dict(attributes)
    like = attributes.pop("like", inputs)
    model, values = make_model(name, domain, op, inputs, **attributes)
    write_expected(out / name, model, op, domain, values, *make_model(name, domain, op, like, **attributes))


def recurrent_case(out, name, op, gates, steps=12, batch=3, depth=19, hidden=37, directions=1, linear=False):
    """Expected values in double precision, and the bound of what float arithmetic may make of them as tolerance."""
    attributes = dict(hidden_size=hidden, direction="bidirectional" if directions == 2 else "forward")
    if op == "GRU":
        attributes["linear_before_reset"] = int(linear)
    x = floats(steps, batch, depth)
    w, r = floats(directions, gates * hidden, depth), floats(directions, gates * hidden, hidden)
    # Weights of states sum up to less than one: else the bound grows from step to step without end.
    r *= np.float32(0.8) / np.abs(r).sum(axis=2, keepdims=True)
    w, b = w * np.float32(0.3), floats(directions, 2 * gates * hidden)
    model, values = make_model(name, "", op, [x, "|", w, r, b], 3 if op == "LSTM" else 2, **attributes)
    outputs, bounds = rounding.recurrent(op, x, w, r, b, linear)
    meta = dict(op=op, domain="ai.onnx", kind="node", folder="", rtol=0.0, atol=max(bounds), atols=bounds)
    write(out / name, meta, model, values, outputs)


def terms_case(out, name, op, terms, apart, inputs, outputs, **attributes):
    """A sum of so many terms, all the same and such that each addition of one to the sum of the others rounds downwards:
    one sum errs by much more than sums of `apart` terms that are added up. The bound is theirs."""
    term = np.float32(1 + 0.45 * terms * rounding.U)
    x, w = np.ones(inputs[0], np.float32), np.full(inputs[1], term)
    model, values = make_model(name, "", op, [x, "|", w], 1, **attributes)
    exact = float(term) * terms
    bound = rounding.U * exact * (1 + min(apart, terms) + -(-terms // apart))
    meta = dict(op=op, domain="ai.onnx", kind="node", folder="", rtol=0.0, atol=bound)
    write(out / name, meta, model, values, [np.full(outputs, exact, np.float32)])


# Of one channel: rows for which an item has room, and for which it has none; of many; a product.
TERMS = [("conv_terms_row", "Conv", 1024, 16, ([1, 2, 3, 1060], [2, 1, 1, 1024]), [1, 2, 3, 37], dict(group=2)),
         ("conv_terms_line", "Conv", 1024, 16, ([1, 1, 4500], [3, 1, 1024]), [1, 3, 109], dict(strides=[32])),
         ("conv_terms_deep", "Conv", 4500, 128, ([1, 500, 5, 11], [9, 500, 3, 3]), [1, 9, 3, 9], {}),
         ("gemm_terms", "Gemm", 4096, 128, ([5, 4096], [4096, 37]), [5, 37], {})]

RECURRENT = [("lstm_bound", "LSTM", 4), ("lstm_both_bound", "LSTM", 4, 7, 2, 5, 33, 2), ("gru_bound", "GRU", 3),
             ("gru_linear_bound", "GRU", 3, 9, 2, 6, 33, 2, True), ("rnn_bound", "RNN", 1),
             ("rnn_both_bound", "RNN", 1, 8, 1, 300, 130, 2)]


def main():
    conformance, out = map(pathlib.Path, sys.argv[1:])
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    sources = [s for s in sorted(conformance.glob("test_*")) if (s / "meta.json").exists()]
    fixed = sum(fix(source, out) for source in sources)
    kept = sum(keep(source, out) for source in sources) + keep_some(sources, out)
    borrowed = sum(borrow(source, out) for source in sorted(CONTRIB.iterdir()) if (source / "meta.json").exists())
    cases = CASES + MORE + BYTES + attention_cases() + KEYS + [*typed_cases(), *moved_cases(), *long_cases(), *mean_cases(),
                                                *rows_cases()]
    for case in cases:
        make_case(out, *case)
    for case in RECURRENT:
        recurrent_case(out, *case)
    for name, op, terms, apart, inputs, outputs, attributes in TERMS:
        terms_case(out, name, op, terms, apart, inputs, outputs, **attributes)
    chain_model(out)
    joined_model(out)
    siblings_model(out)
    norms_model(out)
    for name, model, x in provider_pyramid.cases(of_later_cases):
        write_expected(out / name, model, "MaxPool", "", [x])
    print(f"make_provider_cases: {fixed} tests with constants, {kept} and {borrowed} as they are, "
          f"{len(cases + RECURRENT + TERMS) + 8} cases in {out}")


if __name__ == "__main__":
    main()
