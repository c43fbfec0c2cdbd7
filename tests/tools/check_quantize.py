#!/usr/bin/env python3
"""check_quantize.py - operators x types x forms, quantized by ort-quantize static.

usage: check_quantize.py [--full] [--models DIR] [--keep DIR] BIN_DIR [NET...]

Small nets, one for each operator that computes on codes and what stands beside it, are quantized in
each mode (types of activations and weights, symmetric or not, reduced range, per tensor) and form
(QDQ, QOperator, com.microsoft's Q and DQ). Every file must load here and in onnxruntime, pass
onnx.checker, and give within one step of the result's scale what onnxruntime gives; what is refused
must say what is allowed. So must files that onnxruntime.quantization makes of the same nets, and,
with --models, those of models whose folder has recorded inputs. --full: all modes for all nets.

Closes with "N passed, N failed, N skipped". Needs the packages of tests/requirements.txt.
"""
import argparse
import logging
import os
import pathlib
import platform
import subprocess
import sys
import tempfile

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402
from onnx.reference.op_run import OpRun  # noqa: E402

onnxruntime.set_default_logger_severity(4)
logging.disable(logging.WARNING)
F32 = np.float32
LEVELS = {"uint8": 255, "int8": 255, "uint16": 65535, "int16": 65535, "uint4": 15, "int4": 15, "uint2": 3,
          "int2": 3, "float8e4m3fn": 32, "float8e4m3fnuz": 32, "float8e5m2": 16, "float8e5m2fnuz": 16}
FULL = [("uint8", "int8"), ("uint8", "uint8"), ("int8", "int8"), ("int8", "uint8"), ("uint16", "int8"),
        ("int16", "int16"), ("uint16", "uint16"), ("uint8", "int4"), ("uint8", "uint4"), ("int4", "int4"),
        ("uint4", "uint4"), ("int2", "int2"), ("uint2", "uint2"), ("float8e4m3fn", "float8e4m3fn"),
        ("uint8", "float8e4m3fn"), ("float8e4m3fnuz", "float8e4m3fnuz"), ("float8e5m2", "float8e5m2"),
        ("float8e5m2fnuz", "float8e5m2fnuz"), ("int8", "int4"), ("int8", "int2"), ("uint8", "uint2"), ("uint8", "float8e5m2"),
        ("int16", "int2"), ("uint4", "int8"), ("float8e4m3fn", "int8")]
SHORT = [("uint8", "int8"), ("int8", "int8"), ("uint16", "int8"), ("uint8", "int4")]
EXTRA = [["--symmetric"], ["--asymmetric-weights"], ["--per-tensor"], ["--reduce-range"]]


class Net:
    def __init__(self, opset=13):
        self.nodes, self.constants, self.inputs = [], [], []
        self.rng, self.opset, self.prefix = np.random.default_rng(1), opset, ""

    def input(self, *shape, dtype=TensorProto.FLOAT):
        name = f"x{len(self.inputs)}"
        self.inputs.append((name, shape, dtype))
        return name

    def constant(self, array):
        name = f"{self.prefix}c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def weight(self, *shape):
        return self.constant((0.3 * self.rng.standard_normal(shape)).astype(F32))

    def op(self, op_type, *inputs, outputs=1, **attributes):
        name = f"{self.prefix}{op_type}_{len(self.nodes)}"
        names = [f"{name}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op_type, inputs, names, name, **attributes))
        return names[0] if outputs == 1 else names

    def conv(self, x, channels, maps, size=3, **attributes):
        group = attributes.get("group", 1)
        return self.op("Conv", x, self.weight(maps, channels // group, size, size), self.weight(maps),
                       pads=[size // 2] * 4, **attributes)

    def model(self, *outputs):
        graph = helper.make_graph(
            self.nodes, "net", [helper.make_tensor_value_info(n, t, s) for n, s, t in self.inputs],
            [helper.make_empty_tensor_value_info(o) for o in outputs], self.constants)
        opsets = [helper.make_opsetid("", self.opset)]
        if any(node.domain for node in self.nodes):
            opsets.append(helper.make_opsetid("com.microsoft", 1))
        model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
        model = onnx.shape_inference.infer_shapes(model)
        for output in model.graph.output:  # behind an operator of com.microsoft
            if not output.type.WhichOneof("value"):
                output.CopyFrom(helper.make_tensor_value_info(output.name, TensorProto.FLOAT, [None] * 3))
        return model

    def feeds(self, seed):
        rng = np.random.default_rng(seed)
        return {n: rng.integers(0, 50, s) if t == TensorProto.INT64 else
                rng.standard_normal(s).astype(F32) for n, s, t in self.inputs}


def between(make):
    """A step between two convolutions, where it computes on codes."""
    def build(n):
        x = n.conv(n.input(1, 3, 8, 8), 3, 8)
        return n.conv(make(n, x), 8, 4)
    return build


def nets():
    def conv(n):
        return n.op("Relu", n.conv(n.input(1, 3, 8, 8), 3, 8))

    def conv_1d(n):
        return n.op("Conv", n.input(1, 4, 16), n.weight(6, 4, 3), n.weight(6))

    def conv_3d(n):
        return n.op("Conv", n.input(1, 2, 5, 5, 5), n.weight(4, 2, 3, 3, 3), n.weight(4))

    def conv_grouped(n):
        return n.conv(n.conv(n.input(1, 8, 8, 8), 8, 8, group=8), 8, 8, group=2, strides=[2, 2])

    def conv_computed(n):
        x = n.input(1, 4, 8, 8)
        return n.op("Conv", x, n.op("Reshape", n.op("MatMul", n.input(6, 4), n.weight(4, 36)),
                                    n.constant(np.int64([6, 4, 3, 3]))))

    def conv_transpose(n):
        return n.op("ConvTranspose", n.conv(n.input(1, 3, 6, 6), 3, 4), n.weight(4, 6, 2, 2), n.weight(6),
                    strides=[2, 2])

    def conv_transpose_depthwise(n):
        return n.op("ConvTranspose", n.input(1, 4, 6, 6), n.weight(4, 1, 2, 2), strides=[2, 2], group=4)

    def batch_norm(n):
        x = n.op("Conv", n.input(1, 3, 8, 8), n.weight(8, 3, 3, 3))
        positive = n.constant(np.abs(n.rng.standard_normal(8)).astype(F32) + F32(0.5))
        return n.op("BatchNormalization", x, n.weight(8), n.weight(8), n.weight(8), positive)

    def gemm(n):
        y = n.op("Gemm", n.input(3, 8), n.weight(16, 8), n.weight(16), transB=1)
        return n.op("Gemm", n.op("Relu", y), n.weight(16, 4), n.weight(4))

    def gemm_scaled(n):
        return n.op("Gemm", n.input(3, 8), n.weight(8, 5), n.weight(5), alpha=0.5, beta=2.0)

    def gemm_computed(n):
        return n.op("Gemm", n.input(3, 8), n.input(8, 5), n.weight(5))

    def matmul(n):
        y = n.op("Add", n.op("MatMul", n.input(2, 3, 8), n.weight(8, 16)), n.weight(16))
        return n.op("MatMul", y, n.weight(16, 4))

    def matmul_batched(n):
        return n.op("MatMul", n.input(2, 3, 8), n.weight(2, 8, 5))

    def attention(n):
        x = n.input(1, 6, 8)
        q, k, v = (n.op("MatMul", x, n.weight(8, 8)) for _ in range(3))
        s = n.op("Softmax", n.op("MatMul", q, n.op("Transpose", k, perm=[0, 2, 1])), axis=-1)
        return n.op("MatMul", n.op("MatMul", s, v), n.weight(8, 8))

    def table(n):
        return n.op("MatMul", n.op("Gather", n.weight(64, 80), n.input(1, 5, dtype=TensorProto.INT64)),
                    n.weight(80, 4))

    def tied(n):
        w = n.weight(64, 80)
        x = n.op("Gather", w, n.input(1, 5, dtype=TensorProto.INT64))
        return n.op("MatMul", n.op("Tanh", x), n.op("Transpose", w, perm=[1, 0]))

    def tied_columns(n):
        """A product has channels in the table's columns."""
        w = n.weight(64, 80)
        x = n.op("Gather", w, n.input(5, dtype=TensorProto.INT64))
        return n.op("Add", x, n.op("MatMul", n.op("Gemm", n.op("Tanh", x), n.weight(80, 64), alpha=0.5), w))

    def heads(n):
        x = n.conv(n.input(1, 3, 8, 8), 3, 8)
        boxes = n.op("Mul", n.conv(x, 8, 4, 1), n.constant(F32(300)))
        scores = n.op("Sigmoid", n.conv(x, 8, 2, 1))
        return n.op("Concat", boxes, scores, axis=1)

    def body(make, inputs, outputs):
        """A body of control flow: make(net) gives its results."""
        b = Net()
        b.prefix = "body" + str(len(bodies))
        bodies.append(b)
        results = make(b)
        graph = helper.make_graph(b.nodes, b.prefix, inputs,
                                  [helper.make_tensor_value_info(r, t, s) for r, (t, s) in zip(results, outputs)],
                                  b.constants)
        return graph
    bodies = []
    info, F = helper.make_tensor_value_info, TensorProto.FLOAT

    def branches(n):
        """The one that is taken becomes codes; for the other no sample tells ranges."""
        x = n.op("MatMul", n.input(2, 8), n.weight(8, 8))
        yes = body(lambda b: [b.op("MatMul", b.op("Relu", b.op("MatMul", x, b.weight(8, 16))), b.weight(16, 4))], [],
                   [(F, (2, 4))])
        no = body(lambda b: [b.op("MatMul", x, b.weight(8, 4))], [], [(F, (2, 4))])
        return n.op("If", n.op("Less", n.op("ReduceMean", x, keepdims=0), n.constant(F32(1e6))), then_branch=yes,
                    else_branch=no)

    def loop(n):
        """Carried state, a captured weight, and a value of each step."""
        w = n.weight(8, 8)
        x = n.op("MatMul", n.input(2, 8), w)

        def step(b):
            y = b.op("MatMul", b.op("Add", "state", x), w)
            return [b.op("Identity", "going"), b.op("Tanh", y), b.op("MatMul", y, b.weight(8, 4))]
        inner = body(step, [info("step", TensorProto.INT64, []), info("going", TensorProto.BOOL, []),
                            info("state", F, (2, 8))],
                     [(TensorProto.BOOL, []), (F, (2, 8)), (F, (2, 4))])
        _, y = n.op("Loop", n.constant(np.int64(3)), n.constant(np.bool_(True)), x, body=inner, outputs=2)
        return y

    def scan(n):
        def step(b):
            y = b.op("Tanh", b.op("MatMul", b.op("Concat", "state", "row", axis=1), b.weight(12, 8)))
            return [y, b.op("Identity", y)]
        inner = body(step, [info("state", F, (2, 8)), info("row", F, (2, 4))], [(F, (2, 8)), (F, (2, 8))])
        _, y = n.op("Scan", n.input(2, 8), n.input(5, 2, 4), body=inner, num_scan_inputs=1, outputs=2)
        return y

    def recurrent(op_type, gates, directions):
        def build(n):
            d = {1: "forward", 2: "bidirectional"}[directions]
            y = n.op(op_type, n.input(4, 2, 24), n.weight(directions, gates * 16, 24),
                     n.weight(directions, gates * 16, 16), n.weight(directions, 2 * gates * 16), hidden_size=16,
                     direction=d)
            return n.op("Relu", y)
        return build

    def cached(n):
        """One step of a decoder: keys and values of before come in, and go out with the new ones."""
        x, past = n.input(1, 1, 16), [n.input(1, 2, 3, 8), n.input(1, 2, 3, 8)]
        def heads_of(w):
            return n.op("Transpose", n.op("Reshape", n.op("MatMul", x, w), n.constant(np.int64([1, 1, 2, 8]))),
                        perm=[0, 2, 1, 3])
        q, k, v = (heads_of(n.weight(16, 16)) for _ in range(3))
        k, v = n.op("Concat", past[0], k, axis=2), n.op("Concat", past[1], v, axis=2)
        s = n.op("Softmax", n.op("MatMul", q, n.op("Transpose", k, perm=[0, 1, 3, 2])), axis=-1)
        return n.op("MatMul", s, v), k, v

    def lstm(n):
        x = n.op("MatMul", n.input(4, 2, 8), n.weight(8, 8))
        y = n.op("LSTM", x, n.weight(1, 16, 8), n.weight(1, 16, 4), outputs=1, hidden_size=4)
        return n.op("Relu", y)

    def dense_steps(n):
        x = n.conv(n.input(1, 3, 8, 8), 3, 8)
        a, b = n.op("Split", x, outputs=2, axis=1)
        x = n.op("Concat", n.conv(a, 4, 4), b, axis=1)
        return n.op("Gemm", n.op("Flatten", n.op("GlobalAveragePool", x)), n.weight(8, 3), n.weight(3))

    steps = {
        "Add": lambda n, x: n.op("Add", x, n.conv(x, 8, 8, 1)),
        "AddConstant": lambda n, x: n.op("Add", n.op("Sigmoid", x), n.weight(1, 8, 1, 1)),
        "Sub": lambda n, x: n.op("Sub", x, n.conv(x, 8, 8, 1)),
        "Mul": lambda n, x: n.op("Mul", x, n.op("Sigmoid", x)),
        "Concat": lambda n, x: n.op("Concat", n.conv(x, 8, 4, 1), n.conv(x, 8, 4, 1), axis=1),
        "Relu6": lambda n, x: n.op("Clip", x, n.constant(F32(0)), n.constant(F32(6))),
        "LeakyRelu": lambda n, x: n.op("LeakyRelu", x, alpha=0.1),
        "PRelu": lambda n, x: n.op("PRelu", x, n.weight(8, 1, 1)),
        "HardSigmoid": lambda n, x: n.op("HardSigmoid", x),
        "HardSwish": lambda n, x: n.op("Mul", x, n.op("HardSigmoid", x, alpha=1 / 6)),
        "Tanh": lambda n, x: n.op("Tanh", x),
        "Elu": lambda n, x: n.op("Elu", x),
        "Softplus": lambda n, x: n.op("Softplus", x),
        "AveragePool": lambda n, x: n.op("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2]),
        "MaxPool": lambda n, x: n.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]),
        "GlobalAveragePool": lambda n, x: n.op("GlobalAveragePool", x),
        "ReduceMean": lambda n, x: n.op("ReduceMean", x, axes=[2, 3], keepdims=1),
        "ResizeNearest": lambda n, x: n.op("Resize", x, "", n.constant(F32([1, 1, 2, 2]))),
        "ResizeLinear": lambda n, x: n.op("Resize", x, "", n.constant(F32([1, 1, 2, 2])), mode="linear"),
        "Transpose": lambda n, x: n.op("Transpose", x, perm=[0, 1, 3, 2]),
        "Slice": lambda n, x: n.op("Slice", x, n.constant(np.int64([1])), n.constant(np.int64([7])),
                                   n.constant(np.int64([2]))),
        "SpaceToDepth": lambda n, x: n.op("Reshape", n.op("SpaceToDepth", x, blocksize=2),
                                          n.constant(np.int64([1, 8, 8, 8]))),
    }
    made = {f.__name__: f for f in (conv, conv_1d, conv_3d, conv_grouped, conv_computed, conv_transpose,
                                    conv_transpose_depthwise, batch_norm, gemm, gemm_scaled, gemm_computed,
                                    matmul, matmul_batched, attention, table, tied, tied_columns, heads, lstm,
                                    dense_steps)}
    made.update({f.__name__: f for f in (branches, loop, scan, cached)})
    made.update({"LSTM": recurrent("LSTM", 4, 1), "LSTMBoth": recurrent("LSTM", 4, 2), "GRU": recurrent("GRU", 3, 1)})
    made.update({name: between(make) for name, make in steps.items()})
    return made


class Report:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.plain = []  # what agrees with onnxruntime without its optimizer alone
        self.doubles = []  # what agrees with neither, but with the file computed in doubles

    def ok(self, good, what, why=""):
        self.passed += good
        self.failed += not good
        if not good:
            print(f"not ok {what}: {why}", flush=True)


def run_tool(*command):
    r = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    return r.returncode, (r.stderr.strip().splitlines() or [""])[0]


def scales_of(model):
    """By result of a DequantizeLinear, its one scale."""
    constants = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    return {n.output[0]: float(constants[n.input[1]].reshape(-1)[0]) for n in model.graph.node
            if n.op_type == "DequantizeLinear" and constants.get(n.input[1], np.ones(2)).size == 1}


def cuts_sums():
    """Without VNNI onnxruntime cuts sums of bytes by int8 at 16 bits, and sums in its LSTM of any bytes."""
    cpu = pathlib.Path("/proc/cpuinfo")
    return platform.machine() == "x86_64" and cpu.exists() and "vnni" not in cpu.read_text()


# Inputs of products: the weight, and its zero point.
PRODUCTS = {"QLinearConv": (3, 5), "QLinearMatMul": (3, 5), "QGemm": (3, 5), "ConvInteger": (1, 3), "MatMulInteger": (1, 3)}


def write_unsigned(path, to):
    """The same numbers with weights of products as uint8, 128 above their codes of int8, which onnxruntime never cuts."""
    model = onnx.load(path)
    made = set()

    def shifted(known, name):
        new = f"{name or 'zero'}_unsigned"
        if new not in made:
            codes = numpy_helper.to_array(known[name]).astype(np.int16) if name else np.zeros((), np.int16)
            model.graph.initializer.append(numpy_helper.from_array((codes + 128).astype(np.uint8), new))
            made.add(new)
        return new

    def walk(graph, known):
        known = {**known, **{t.name: t for t in graph.initializer}}
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.GRAPH:
                    walk(attribute.g, known)
            weight, zero = PRODUCTS.get(node.op_type, (0, 0))
            if not weight or getattr(known.get(node.input[weight]), "data_type", None) != TensorProto.INT8:
                continue
            node.input.extend([""] * (zero + 1 - len(node.input)))
            node.input[weight] = shifted(known, node.input[weight])
            node.input[zero] = shifted(known, node.input[zero])

    walk(model.graph, {})
    onnx.save(model, to)


def agrees(bin_dir, path, feeds, levels, folder, **more):
    """None, or what is wrong with the file: beside onnxruntime as it is or, where it cuts sums, as it doesn't: in its exact
    mode, which makes no sessions of some files, or with weights of uint8 for int8."""
    why = agrees_with(bin_dir, path, feeds, levels, folder, **more)
    if not why or not why.startswith("off by") or not cuts_sums():
        return why
    if not agrees_with(bin_dir, path, feeds, levels, folder, exact=True, **more):
        return None
    theirs = folder / "unsigned.onnx"
    write_unsigned(path, theirs)
    return why if agrees_with(bin_dir, path, feeds, levels, folder, theirs=theirs, **more) else None


def in_doubles(path, feeds):
    """What the file defines, Q and DQ and all between in doubles: there means of codes that lie halfway do so exactly, which
    floats round to either side."""
    def across(x, values, axis):
        """One number of all, or one a channel, in doubles."""
        shape = [1] * x.ndim
        if values.size > 1:
            shape[axis] = -1
        return values.astype(np.float64).reshape(shape)

    class DequantizeLinear(OpRun):
        def _run(self, x, scale, zero=None, axis=1, block_size=0, output_dtype=None):
            return ((x.astype(np.float64) - (0 if zero is None else across(x, zero, axis))) * across(x, scale, axis),)

    class QuantizeLinear(OpRun):
        def _run(self, x, scale, zero, axis=1, block_size=0, output_dtype=None, precision=None, saturate=1):
            ends = np.iinfo(zero.dtype)
            codes = np.rint(x / across(x, scale, axis)) + across(x, zero, axis)
            return (np.clip(codes, ends.min, ends.max).astype(zero.dtype),)

    return ReferenceEvaluator(str(path), new_ops=[DequantizeLinear, QuantizeLinear]).run(None, feeds)


def agrees_with(bin_dir, path, feeds, levels, folder, steps=1.0, optimized=True, exact=False, theirs=None, doubles=False):
    """optimized, exact: by onnxruntime, which runs `theirs` instead of the file. doubles: by in_doubles."""
    try:
        onnx.checker.check_model(str(path), full_check=True)
    except Exception as e:  # noqa: BLE001
        return f"onnx.checker: {str(e).splitlines()[0]}"
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    if exact:
        options.add_session_config_entry("session.x64quantprecision", "1")
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    # else it rounds what is multiplied with weights of a few bits to 8 bits, which no file asks for
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "0")
    try:
        session = onnxruntime.InferenceSession(str(theirs or path), options, providers=["CPUExecutionProvider"])
        expected = in_doubles(path, feeds) if doubles else session.run(None, feeds)
    except Exception as e:  # noqa: BLE001
        return f"onnxruntime: {str(e).splitlines()[0]}"
    np.savez(folder / "in.npz", **feeds)
    status, said = run_tool(bin_dir / "ort-run", path, "-i", folder / "in.npz", "-o", folder / "out.npz",
                            "--force")
    if status:
        return f"ort-run: {said}"
    got = np.load(folder / "out.npz")
    scales = scales_of(onnx.load(path))
    for output, want in zip(session.get_outputs(), expected):
        if output.name not in got.files:
            return f"ort-run gives no '{output.name}'"
        have = got[output.name]
        if have.shape != want.shape:
            return f"shape {have.shape}, onnxruntime's {want.shape}"
        if want.dtype.kind != "f":
            continue
        step = max(float(want.max(initial=0)) - float(want.min(initial=0)), 1e-9) / levels
        step = max(step, scales.get(output.name, 0))
        worst = float(np.abs(have.astype(np.float64) - want.astype(np.float64)).max(initial=0))
        if not worst <= steps * step + 2e-6 * float(np.abs(want).max(initial=0)):
            return f"off by {worst / step:.2f} steps"
    return None


def judge(report, what, *arguments):
    """By onnxruntime as it is; by its plain graph where its optimizer moves its own result by more than a step; by doubles
    where both lie off the same. None, or what is wrong."""
    why = agrees(*arguments)
    if not why or not why.startswith("off by"):
        return why
    if not agrees(*arguments, optimized=False):
        report.plain.append(what)
    elif not agrees(*arguments, doubles=True):
        report.doubles.append(what)
    else:
        return why
    return None


def levels_of(types, extra):
    """How many steps the codes of what is computed have."""
    return 127 if "--reduce-range" in extra else LEVELS[types[0]]


def modes(full):
    for types in FULL if full else SHORT:
        yield types, "qdq", []
    for extra in EXTRA:
        yield ("uint8", "int8"), "qdq", extra
    for types in (("uint8", "int8"), ("uint8", "uint8"), ("int8", "int8")):
        if full or types != ("uint8", "uint8"):
            yield types, "qoperator", []
    if full:
        yield ("uint8", "int8"), "qoperator", ["--per-tensor"]
        yield ("uint16", "int4"), "qdq", ["--contrib-codes"]


def check_net(args, name, build, folder, report):
    n = Net(17 if name == "lstm" else 13)
    path = folder / "float.onnx"
    results = build(n)
    onnx.save(n.model(*(results if isinstance(results, tuple) else (results,))), path)
    samples = []
    for k in range(3):
        samples.append(folder / f"s{k}.npz")
        np.savez(samples[-1], **n.feeds(k))
    for types, form, extra in modes(args.full):
        what = " ".join([name, form, *types, *extra])
        made = folder / "q.onnx"
        command = [args.bin / "ort-quantize", "static", path, "-o", made, "--activation-type", types[0],
                   "--weight-type", types[1], "--form", form, "--quiet", "--force", *extra]
        for s in samples:
            command += ["-i", s]
        status, said = run_tool(*command)
        why = f"ort-quantize: {said}" if status else judge(report, what, args.bin, made, n.feeds(0), levels_of(types, extra),
                                                           folder)
        report.ok(not why, what, why)
        if why and args.keep and made.exists():
            args.keep.mkdir(exist_ok=True)
            (args.keep / (what.replace(" ", "_") + ".onnx")).write_bytes(made.read_bytes())
    check_theirs(args, name, n, path, folder, report)


def check_doubles(folder, report):
    """in_doubles itself, with a scale and zero point for each channel."""
    path = folder / "channels.onnx"
    n = Net(13)
    x, scale, zero = n.input(2, 3, 4), n.constant(F32([0.1, 0.25, 3])), n.constant(np.uint8([0, 7, 250]))
    codes = n.op("QuantizeLinear", x, scale, zero, axis=1)
    onnx.save(n.model(n.op("DequantizeLinear", codes, scale, zero, axis=1)), path)
    feeds = n.feeds(0)
    expected = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(None, feeds)[0]
    try:
        got = in_doubles(path, feeds)[0]
        report.ok(bool(np.allclose(got, expected, rtol=1e-6, atol=1e-6)), "doubles, a scale a channel", "other numbers")
    except Exception as e:  # noqa: BLE001
        report.ok(False, "doubles, a scale a channel", str(e).splitlines()[0])


class Reader:
    def __init__(self, n):
        self.left = [n.feeds(k) for k in range(3)]

    def get_next(self):
        return self.left.pop() if self.left else None


def check_theirs(args, name, n, path, folder, report):
    from onnxruntime import quantization as oq
    if name == "ResizeLinear":  # onnxruntime cuts interpolated codes off, ONNX's reference and ours round them
        report.skipped += 1
        return
    kinds = [(oq.QuantFormat.QDQ, oq.QuantType.QUInt8, oq.QuantType.QInt8, True),
             (oq.QuantFormat.QOperator, oq.QuantType.QUInt8, oq.QuantType.QInt8, False)]
    if args.full:
        kinds += [(oq.QuantFormat.QDQ, oq.QuantType.QInt8, oq.QuantType.QInt8, False),
                  (oq.QuantFormat.QDQ, oq.QuantType.QUInt16, oq.QuantType.QInt8, True)]
    for form, act, weight, channels in kinds:
        made = folder / "theirs.onnx"
        what = f"{name} onnxruntime.quantization {form} {act} {weight}"
        try:
            oq.quantize_static(str(path), str(made), Reader(n), quant_format=form, activation_type=act,
                               weight_type=weight, per_channel=channels)
            onnxruntime.InferenceSession(str(made), providers=["CPUExecutionProvider"])
        except Exception as e:  # noqa: BLE001
            report.skipped += 1
            if args.full:
                print(f"skipped {what}: {str(e).splitlines()[0][:120]}")
            continue
        why = judge(report, what, args.bin, made, n.feeds(0), 65535 if "16" in str(act) else 255, folder)
        if why and why.startswith("onnxruntime:"):  # it doesn't run what it wrote
            report.skipped += 1
        else:
            report.ok(not why, what, why)


def check_model(args, root, folder, report):
    path = root / "model.onnx"
    data = root / "test_data_set_0"
    if not path.exists() or not data.exists() or path.stat().st_size > 30 << 20:
        return
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    files = sorted(data.glob("input_*.pb"))
    feeds = {}
    for x, f in zip(session.get_inputs(), files):
        t = onnx.TensorProto()
        t.ParseFromString(f.read_bytes())
        feeds[x.name] = numpy_helper.to_array(t)
    for form, types in (("qdq", ("uint8", "int8")), ("qoperator", ("uint8", "int8")), ("qdq", ("uint16", "int8"))):
        made = folder / "m.onnx"
        status, said = run_tool(args.bin / "ort-quantize", "static", path, "-i", data, "-o", made, "--quiet",
                                "--force", "--form", form, "--activation-type", types[0])
        what = f"{root.name} {form} {types}"
        why = f"ort-quantize: {said}" if status else judge(report, what, args.bin, made, feeds,
                                                           LEVELS[types[0]], folder)
        report.ok(not why, what, why)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--models", type=pathlib.Path)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("only", nargs="*")
    args = parser.parse_args()
    report = Report()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        check_doubles(folder, report)
        for net, build in nets().items():
            if not args.only or net in args.only:
                check_net(args, net, build, folder, report)
        for root in sorted(args.models.iterdir()) if args.models else []:
            if root.is_dir() and (not args.only or root.name in args.only):
                check_model(args, root, folder, report)
    if report.plain:
        print(f"{len(report.plain)} of them agree with onnxruntime without its optimizer alone:",
              ", ".join(report.plain))
    if report.doubles:
        print("with the file computed in doubles alone, where codes lie halfway:", ", ".join(report.doubles))
    print(f"{report.passed} passed, {report.failed} failed, {report.skipped} skipped")
    return report.failed != 0


if __name__ == "__main__":
    sys.exit(main())
