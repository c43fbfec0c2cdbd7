#!/usr/bin/env python3
"""Show where the expected values of a quantized model come from, and write exact ones.

usage: exact_int8.py MODEL_DIR [OUTPUT_DIR]

onnxruntime on processors without VNNI multiplies unsigned by signed bytes with an instruction that
adds two products and saturates the sum at 16 bits. Expected values recorded on such a machine hold
that error. This script computes the model's QLinearConv nodes in numpy twice: with sums of pairs
saturated, in the order of that kernel, which must give the expected values bit for bit; and exactly,
which is what goes to OUTPUT_DIR/test_data_set_0/output_0.pb. The other nodes run one by one in
onnxruntime. Needs the packages of tests/requirements.txt. Single operators beside sums in 64 bits:
exact_operators.py.
"""
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper


def load(path):
    return numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes()))


def saturated_product(a, b):
    """a (unsigned bytes) times b (signed bytes), sums of neighbouring pairs cut to 16 bits."""
    odd = a.shape[1] % 2
    a, b = np.pad(a, ((0, 0), (0, odd))), np.pad(b, ((0, odd), (0, 0)))
    total = np.zeros((a.shape[0], b.shape[1]), np.int32)
    for k in range(0, a.shape[1], 2):
        total += np.clip(a[:, k:k + 1] * b[k] + a[:, k + 1:k + 2] * b[k + 1], -32768, 32767)
    return total


def conv_sums(x, x_zero, w, w_zero, attributes, saturate):
    """Integer sums, N x maps x height x width. Taps come before channels, as in the kernel."""
    pads, strides = attributes.get("pads", [0] * 4), attributes.get("strides", [1, 1])
    padded = np.pad(x, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])),
                    constant_values=x_zero)
    win = np.lib.stride_tricks.sliding_window_view(padded, w.shape[2:], (2, 3))
    win = win[:, :, ::strides[0], ::strides[1]].astype(np.int32)
    w, w_zero = w.astype(np.int32), w_zero.astype(np.int32).reshape(-1)
    if attributes.get("group", 1) != 1:  # depthwise: another kernel, which is exact
        return np.einsum("nchwij,cij->nchw", win - int(x_zero), w[:, 0] - w_zero[:, None, None])
    n, _, height, width = win.shape[:4]
    a = win.transpose(0, 2, 3, 4, 5, 1).reshape(n * height * width, -1)
    b = w.transpose(2, 3, 1, 0).reshape(a.shape[1], -1)
    total = saturated_product(a, b) if saturate else a @ b
    total = (total - int(x_zero) * b.sum(0) - w_zero * a.sum(1, keepdims=True) +
             int(x_zero) * w_zero * a.shape[1])
    return total.reshape(n, height, width, -1).transpose(0, 3, 1, 2)


def qlinear_conv(node, values, saturate):
    given = [values[name] for name in node.input]
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero = given[:8]
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    total = conv_sums(x, x_zero, w, w_zero, attributes, saturate)
    if len(given) > 8:
        total = total + given[8].reshape(1, -1, 1, 1)
    scale = (x_scale * w_scale / y_scale).astype(np.float32).reshape(1, -1, 1, 1)
    rounded = np.rint(total.astype(np.float32) * scale) + int(y_zero)
    limits = np.iinfo(y_zero.dtype)
    return [np.clip(rounded, limits.min, limits.max).astype(y_zero.dtype)]


def run_alone(node, values, model):
    info = [helper.make_tensor_value_info(
        name, helper.np_dtype_to_tensor_dtype(values[name].dtype), values[name].shape)
        for name in dict.fromkeys(node.input) if name]
    graph = helper.make_graph([node], "one", info,
                              [onnx.ValueInfoProto(name=name) for name in node.output])
    single = helper.make_model(graph, opset_imports=model.opset_import,
                               ir_version=model.ir_version)
    session = onnxruntime.InferenceSession(single.SerializeToString())
    return session.run(None, {i.name: values[i.name] for i in info})


def run(model, x, saturate):
    graph = model.graph
    values = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
    values[next(i.name for i in graph.input if i.name not in values)] = x
    for node in graph.node:
        out = (qlinear_conv(node, values, saturate) if node.op_type == "QLinearConv" else
               run_alone(node, values, model))
        values.update(zip(node.output, out))
    return values[graph.output[0].name]


def main():
    folder = pathlib.Path(sys.argv[1])
    model = onnx.load(folder / "model.onnx")
    x = load(folder / "test_data_set_0" / "input_0.pb")
    expected = load(folder / "test_data_set_0" / "output_0.pb")
    saturated, exact = run(model, x, True), run(model, x, False)
    print(f"saturating sums differ from the expected values by {abs(saturated - expected).max():g}")
    print(f"exact sums differ from the expected values by {abs(exact - expected).max():g}")
    if len(sys.argv) > 2:
        out = pathlib.Path(sys.argv[2]) / "test_data_set_0"
        out.mkdir(parents=True, exist_ok=True)
        tensor = numpy_helper.from_array(exact, model.graph.output[0].name)
        (out / "output_0.pb").write_bytes(tensor.SerializeToString())


if __name__ == "__main__":
    main()
