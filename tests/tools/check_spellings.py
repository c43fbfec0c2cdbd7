#!/usr/bin/env python3
"""check_spellings.py - files of onnxruntime's quantizers and NNCF's run in integers, whatever their options.

usage: check_spellings.py [--keep DIR] [--python-of-nncf PYTHON] BIN_DIR [NET.FORM...]

Small nets are quantized by onnxruntime.quantization in each form that it offers: types of
activations and weights, per channel, symmetric, pairs on weights, a pair for each reader, biases in
float, Q and DQ of com.microsoft, weights of 4 bits, codes of 16 bits, QOperator, old opsets; and by NNCF with its presets
(write_nncf.py), skipped where its packages can't be had. A session of each must
run nothing in float but what its net has outside of Q and DQ (ort-profile --json lists its steps;
-vv says what stays, and why), and give within two steps of the result's scale (of 16-bit codes, of
the coarsest) what onnxruntime gives, without any optimization or by its own integers: a code at a half
may go either way, and later layers make more of it. Forms of other writers stand in
tests/unit/test_code_writers.c.

Closes with "N passed, N failed, N skipped". Needs the packages of tests/requirements.txt.
"""
import argparse
import json
import logging
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnxruntime import quantization  # noqa: E402
from onnxruntime.quantization import QuantFormat, QuantType  # noqa: E402
from onnxruntime.quantization.registry import QDQRegistry, QLinearOpsRegistry  # noqa: E402

U8, S8, S4 = QuantType.QUInt8, QuantType.QInt8, QuantType.QInt4
U16, S16 = QuantType.QUInt16, QuantType.QInt16
F32 = np.float32
# Steps that take codes and give codes, or say so by their name.
MOVES = {"QuantizeLinear", "DequantizeLinear", "Reshape", "Transpose", "Flatten", "Gather", "Slice",
         "Concat", "Split", "MaxPool", "Resize", "DepthToSpace", "LookUp", "LookUpEach"}


class Net:
    def __init__(self):
        self.nodes, self.constants, self.rng = [], [], np.random.default_rng(1)

    def constant(self, array):
        self.constants.append(numpy_helper.from_array(np.asarray(array),
                                                      f"c{len(self.constants)}"))
        return self.constants[-1].name

    def weight(self, *shape):
        return self.constant((0.3 * self.rng.standard_normal(shape)).astype(F32))

    def op(self, op_type, *inputs, **attributes):
        name = f"{op_type}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, inputs, [name + "_out"], name, **attributes))
        return self.nodes[-1].output[0]

    def conv(self, x, channels, maps, size=3, stride=1, group=1, op="Conv"):
        shape = (maps, channels // group) if op == "Conv" else (channels, maps)
        pads = [size // 2 if op == "Conv" else 0] * 4
        return self.op(op, x, self.weight(*shape, size, size), self.weight(maps), pads=pads,
                       kernel_shape=[size] * 2, strides=[stride] * 2, group=group)

    def linear(self, x, width, results):
        return self.op("Add", self.op("MatMul", x, self.weight(width, results)),
                       self.weight(results))

    def save(self, path, shape, result, opset):
        info = helper.make_tensor_value_info
        graph = helper.make_graph(self.nodes, "net", [info("x", TensorProto.FLOAT, shape)],
                                  [info(result, TensorProto.FLOAT, None)], self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)],
                                  ir_version=8)
        onnx.save(onnx.shape_inference.infer_shapes(model), path)


# ---- nets: (net, its result, the shape of x, operators that stand outside of Q and DQ)

def residual():
    n = Net()
    a = n.op("Relu", n.conv("x", 3, 16, stride=2))
    b = n.op("Relu", n.conv(a, 16, 16))
    a = n.op("Relu", n.op("Add", a, n.conv(b, 16, 16)))
    a = n.op("MaxPool", a, kernel_shape=[2, 2], strides=[2, 2])
    p = n.op("AveragePool", a, kernel_shape=[3, 3], pads=[1] * 4, strides=[1, 1])
    a = n.op("GlobalAveragePool", n.op("Concat", a, p, axis=1))
    a = n.op("Gemm", n.op("Flatten", a), n.weight(10, 32), n.weight(10), transB=1)
    return n, n.op("Softmax", a), [1, 3, 32, 32], set()


def mobile():
    n = Net()
    a = n.op("Clip", n.conv("x", 3, 16, stride=2), n.constant(F32(0)), n.constant(F32(6)))
    a = n.op("HardSwish", n.conv(a, 16, 16, group=16))
    s = n.op("Relu", n.conv(n.op("GlobalAveragePool", a), 16, 8, 1))
    a = n.op("Mul", a, n.op("HardSigmoid", n.conv(s, 8, 16, 1)))
    a = n.conv(a, 16, 24, 1)
    a = n.op("Mul", a, n.op("Sigmoid", a))
    a = n.op("ReduceMean", a, axes=[2, 3], keepdims=0)
    return n, n.linear(a, 24, 10), [1, 3, 32, 32], set()


def segments():
    n = Net()
    a = n.op("LeakyRelu", n.conv("x", 3, 16, stride=2), alpha=0.1)
    b = n.op("Relu", n.conv(a, 16, 32, stride=2))
    b = n.op("Relu", n.conv(b, 32, 16, 2, 2, op="ConvTranspose"))
    a = n.op("Sigmoid", n.conv(n.op("Concat", a, b, axis=1), 32, 4))
    return n, n.op("Reshape", a, n.constant(np.int64([1, 4, -1]))), [1, 3, 32, 32], set()


def encoder():
    n, width = Net(), 32

    def heads(x, perm):
        return n.op("Transpose", n.op("Reshape", n.linear(x, width, width),
                                      n.constant(np.int64([0, 0, 4, 8]))), perm=perm)
    x = n.op("LayerNormalization", "x", n.weight(width), n.weight(width))
    q, k, v = (heads(x, p) for p in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
    scores = n.op("Div", n.op("MatMul", q, k), n.constant(F32(8 ** 0.5)))
    a = n.op("MatMul", n.op("Softmax", scores, axis=-1), v)
    a = n.op("Reshape", n.op("Transpose", a, perm=[0, 2, 1, 3]), n.constant(np.int64([0, 0, 32])))
    a = n.op("Add", n.linear(a, width, width), x)
    f = n.linear(n.op("LayerNormalization", a, n.weight(width), n.weight(width)), width, 64)
    erf = n.op("Erf", n.op("Div", f, n.constant(F32(2 ** 0.5))))
    f = n.op("Mul", n.op("Mul", f, n.op("Add", erf, n.constant(F32(1)))), n.constant(F32(0.5)))
    return n, n.op("Add", n.linear(f, 64, width), a), [2, 12, width], {"LayerNormalization"}


def recurrent(op, gates, **attributes):
    """Two layers, of two directions and of one; onnxruntime's writer has no rule for them, and
    puts pairs around all that they read and give."""
    n, hidden = Net(), 96

    def layer(x, width, directions):
        rows = gates * hidden
        return n.op(op, x, n.weight(directions, rows, width), n.weight(directions, rows, hidden),
                    n.weight(directions, 2 * rows), hidden_size=hidden,
                    direction="bidirectional" if directions == 2 else "forward", **attributes)
    a = n.op("Transpose", layer("x", 32, 2), perm=[0, 2, 1, 3])
    a = layer(n.op("Reshape", a, n.constant(np.int64([0, 0, -1]))), 2 * hidden, 1)
    a = n.op("Squeeze", a, n.constant(np.int64([1])))
    return n, n.linear(a, hidden, 10), [6, 2, 32], set()


NETS = {"residual": residual, "mobile": mobile, "segments": segments, "encoder": encoder,
        "lstm": lambda: recurrent("LSTM", 4), "gru": lambda: recurrent("GRU", 3),
        "gru_linear": lambda: recurrent("GRU", 3, linear_before_reset=1)}
RECURRENT = ["LSTM", "GRU"]  # not quantized unless they are asked for


# ---- forms: arguments of quantize_static; of which nets, and at which opset

def form(activations, weights, nets=tuple(NETS), opset=17, qdq=True, per_channel=False,
         **options):
    arguments = {"activation_type": activations, "weight_type": weights,
                 "per_channel": per_channel, "extra_options": options,
                 "op_types_to_quantize": [*{*QDQRegistry, *QLinearOpsRegistry, *RECURRENT}],
                 "quant_format": QuantFormat.QDQ if qdq else QuantFormat.QOperator}
    return nets, opset, arguments


OLD = ("residual",)
WIDE = ("residual", "mobile", "segments", "encoder")
FORMS = {
    "u8s8": form(U8, S8), "u8u8": form(U8, U8), "s8s8": form(S8, S8),
    "s8s8_channel": form(S8, S8, per_channel=True), "u8s8_channel": form(U8, S8, per_channel=True),
    "symmetric": form(S8, S8, ActivationSymmetric=True, WeightSymmetric=True),
    "weight_pairs": form(S8, S8, per_channel=True, AddQDQPairToWeight=True),
    "dedicated_pairs": form(U8, S8, DedicatedQDQPair=True),
    "float_bias": form(U8, S8, QuantizeBias=False),
    "kept": form(U8, S8, QDQKeepRemovableActivations=True),
    "forced": form(U8, S8, ForceQuantizeNoInputCheck=True),
    "constant_b": form(U8, S8, MatMulConstBOnly=True), "contrib": form(U8, S8, UseQDQContribOps=True),
    "weights_4": form(U8, S4, UseQDQContribOps=True),
    "opset_10": form(U8, S8, OLD, 10), "opset_12": form(S8, S8, OLD, 12),
    "opset_21": form(U8, S8, ("residual", "segments"), 21),
    "wide_u16": form(U16, S8, WIDE), "wide_s16": form(S16, S8, WIDE, per_channel=True),
    "wide_symmetric": form(S16, S8, ("residual",), ActivationSymmetric=True, WeightSymmetric=True),
    "wide_contrib": form(U16, U8, ("mobile",), UseQDQContribOps=True),
    "wide_opset_21": form(S16, S8, ("residual", "segments"), 21),
    "qoperator": form(U8, S8, OLD, qdq=False), "qoperator_u8": form(U8, U8, OLD, qdq=False),
    "qoperator_s8": form(S8, S8, OLD, qdq=False, per_channel=True),
}


# Of 16-bit codes: what has no form on them, and is said by -v.
WIDE_FLOAT = {"residual": {"Softmax"}, "mobile": {"Mul"},
              "segments": set(), "encoder": {"MatMul", "Softmax"}}
# Forms of write_nncf.py, and of which nets: NNCF has no rule for recurrent operators.
NNCF = {"mixed": ("residual", "mobile", "segments", "encoder"),
        "performance": ("residual", "mobile", "segments", "encoder"),
        "exact": ("residual", "mobile", "encoder"), "transformer": ("encoder",)}
# What has no pair behind it there, and is float by the file: what follows the last product; a mean of
# joined codes of two scales; squeezed channels (FusedConv too); functions behind a convolution's exact sums (QuickGelu,
# LeakyRelu: these aren't known to commute with rounding); sums that a norm reads as well.
LAST = {"MatMulIntegerToFloat", "Softmax"}
NNCF_FLOAT = {"residual": LAST | {"GlobalAveragePool"},
              "mobile": LAST | {"FusedConv", "GlobalAveragePool", "QuickGelu"},
              "segments": {"LeakyRelu", "Sigmoid"},
              "encoder": LAST | {"Add", "Div", "Gelu", "SkipLayerNormalization"}}
# Scores and their products stay float with this model type, behind SmoothQuant's factors.
NNCF_TRANSFORMER = {"ElementwiseChain", "MatMul", "Mul"}


class Reader(quantization.CalibrationDataReader):
    def __init__(self, shape):
        self.sets = iter([{"x": np.random.default_rng(i).standard_normal(shape).astype(F32)}
                          for i in range(4)])

    def get_next(self):
        return next(self.sets, None)


# ---- what a session does with it

def steps(bin_dir, path):
    out = subprocess.run([bin_dir / "ort-profile", path, "--json", "--no-peak", "--repeat", "1",
                          "--warmup", "0", "--threads", "1"], check=True, capture_output=True)
    return {n["op_type"] for n in json.loads(out.stdout)["nodes"]}


def in_float(names, outside):
    return sorted(n for n in names - MOVES - outside
                  if not n.startswith(("QLinear", "QGemm", "Bytes", "BlockBytes", "Unblock", "Code", "Wide")))


def outside_of(net, name, outside):
    if name.startswith("wide_"):
        return outside | WIDE_FLOAT[net]
    if not name.startswith("nncf_"):
        return outside
    return outside | NNCF_FLOAT[net] | (NNCF_TRANSFORMER if name == "nncf_transformer" else set())


def last_scale(model, result):
    """Of a result in float half a percent of its largest number."""
    values = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    scales = [values[i] for n in model.graph.node for i in n.input
              if "Linear" in n.op_type and i in values and values[i].dtype == F32
              and model.graph.output[0].name in n.output]
    return max((float(s.max()) for s in scales), default=5e-3 * float(np.abs(result).max()))


def coarsest_scale(model):
    """Of codes of 16 bits, before functions that make many steps of one code."""
    values = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    return max(float(values[n.input[1]].max()) for n in model.graph.node
               if n.op_type == "QuantizeLinear")


def results(bin_dir, path, shape):
    x = np.random.default_rng(9).standard_normal(shape).astype(F32)
    wants = []
    for level in ("ORT_DISABLE_ALL", "ORT_ENABLE_ALL"):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
        wants += onnxruntime.InferenceSession(path, options).run(None, {"x": x})
    np.save(path.with_suffix(".npy"), x)
    out = path.with_suffix(".out.npy")
    subprocess.run([bin_dir / "ort-run", "-q", path, "-i", path.with_suffix(".npy"), "-o", out],
                   check=True, capture_output=True)
    return wants, np.load(out)


def write_nncf(python, source, path, shape, name):
    samples = source.with_suffix(".samples.npz")
    np.savez(samples, *[feeds["x"] for feeds in Reader(shape).sets])
    subprocess.run([python, pathlib.Path(__file__).with_name("write_nncf.py"), source, path, samples, name],
                   check=True, capture_output=True)


def check(options, folder, net, name):
    """What is wrong, or None."""
    bin_dir, (n, result, shape, outside) = options.bin_dir, NETS[net]()
    source, path = folder / f"{net}.onnx", folder / f"{net}.{name}.onnx"
    _, opset, arguments = FORMS.get(name, (None, 17, None))
    n.save(source, shape, result, opset)
    try:
        if arguments:
            quantization.quantize_static(source, path, Reader(shape), **arguments)
        else:
            write_nncf(options.python_of_nncf, source, path, shape, name.removeprefix("nncf_"))
        left = in_float(steps(bin_dir, path), outside_of(net, name, outside))
        if left:
            return "in float: " + ", ".join(left)
        wants, got = results(bin_dir, path, shape)
    except subprocess.CalledProcessError as error:
        return error.stderr.decode().strip()[-200:]
    model = onnx.load(path)
    step = coarsest_scale(model) if name.startswith("wide_") else last_scale(model, wants[0])
    off = float(min(np.abs(w - got).max() for w in wants)) / step
    return f"{off:.1f} steps beside onnxruntime" if not off <= 2 else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--keep", metavar="DIR")
    parser.add_argument("--python-of-nncf", metavar="PYTHON")
    parser.add_argument("bin_dir", type=pathlib.Path)
    parser.add_argument("only", nargs="*", metavar="NET.FORM")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    onnxruntime.set_default_logger_severity(4)
    all_of = {f"{net}.{name}": (net, name) for net in NETS for name in FORMS if net in FORMS[name][0]}
    of_nncf = {f"{net}.nncf_{name}": (net, f"nncf_{name}") for name, nets in NNCF.items() for net in nets}
    has_nncf = options.python_of_nncf and os.access(options.python_of_nncf, os.X_OK)
    all_of.update(of_nncf if has_nncf else {})
    skipped = 0 if has_nncf else len(of_nncf)
    passed = failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(options.keep or scratch)
        for label in options.only or all_of:
            why = check(options, folder, *all_of[label])
            passed, failed = passed + (why is None), failed + (why is not None)
            if why:
                print(f"not ok {label}: {why}", flush=True)
    if skipped:
        print(f"skip {skipped} files of NNCF, whose packages aren't here (NNCF=1 make spellings installs them)")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
