#!/usr/bin/env python3
"""Train models/digits.onnx: a small convolutional network that reads 8x8 digits.

usage: train_digits.py [MODELS_DIR]

Writes digits.onnx, labels_digits.txt, images/digit_LABEL_INDEX.png (36 images of the held-out
split) and the arrays digits_images and digits_labels of held_out.npz. Needs numpy, scikit-learn,
onnx and pillow, and about a minute on one core.
"""
import os
import pathlib
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

import digits_data
from numpy_net import Conv, Dense, Flatten, MaxPool, Network, Relu

EPOCHS, BATCH = 30, 64


def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def shifted(rng, images):
    """Each image moved by at most one pixel, edges filled with the background."""
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    out = np.empty_like(images)
    for k, (dy, dx) in enumerate(rng.integers(0, 3, (len(images), 2))):
        out[k] = padded[k, :, dy:dy + 8, dx:dx + 8]
    return out


def train(images, labels):
    rng = np.random.default_rng(7)
    net = Network([Conv(rng, 1, 16, 3), Relu(), Conv(rng, 16, 32, 3), Relu(), MaxPool(),
                   Flatten(), Dense(rng, 512, 48), Relu(), Dense(rng, 48, 10)])
    total = EPOCHS * (len(images) // BATCH)
    for epoch in range(EPOCHS):
        order = rng.permutation(len(images))
        for k in range(len(images) // BATCH):
            pick = order[k * BATCH:(k + 1) * BATCH]
            p = softmax(net.forward(shifted(rng, images[pick])))
            p[np.arange(BATCH), labels[pick]] -= 1
            net.backward(p / BATCH)
            rate = 2e-3 * 0.5 * (1 + np.cos(np.pi * net.steps / total))
            net.adam(rate, decay=1e-3)
    return net


def export(net, path):
    conv1, conv2, dense1, dense2 = (net.layers[i] for i in (0, 2, 6, 8))
    weights = {"conv1.weight": conv1.w, "conv1.bias": conv1.b, "conv2.weight": conv2.w,
               "conv2.bias": conv2.b, "hidden.weight": dense1.w, "hidden.bias": dense1.b,
               "scores.weight": dense2.w, "scores.bias": dense2.b}
    node = helper.make_node
    nodes = [
        node("Conv", ["image", "conv1.weight", "conv1.bias"], ["c1"], "conv1",
             kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("Relu", ["c1"], ["r1"], "relu1"),
        node("Conv", ["r1", "conv2.weight", "conv2.bias"], ["c2"], "conv2",
             kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("Relu", ["c2"], ["r2"], "relu2"),
        node("MaxPool", ["r2"], ["p2"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
        node("Flatten", ["p2"], ["f"], "flatten"),
        node("Gemm", ["f", "hidden.weight", "hidden.bias"], ["h"], "hidden", transB=1),
        node("Relu", ["h"], ["hr"], "relu3"),
        node("Gemm", ["hr", "scores.weight", "scores.bias"], ["s"], "scores", transB=1),
        node("Softmax", ["s"], ["probabilities"], "softmax", axis=1),
    ]
    graph = helper.make_graph(
        nodes, "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, 8, 8])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", 10])],
        [numpy_helper.from_array(np.ascontiguousarray(w), name) for name, w in weights.items()],
        doc_string="Reads 8x8 handwritten digits, pixels 0 (background) to 1 (ink).")
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8,
                              producer_name="train_digits.py")
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else
                          pathlib.Path(__file__).resolve().parents[2] / "models")
    (folder / "images").mkdir(parents=True, exist_ok=True)
    images, labels, held, held_labels = digits_data.load()
    as_input = lambda x: (x[:, None].astype(np.float32) / np.float32(255))
    net = train(as_input(images), labels)
    accuracy = (net.forward(as_input(held)).argmax(1) == held_labels).mean()
    print(f"digits: held-out accuracy {accuracy:.4f} on {len(held)} images")
    export(net, folder / "digits.onnx")
    (folder / "labels_digits.txt").write_text("".join(f"{d}\n" for d in range(10)))
    for k in range(36):
        Image.fromarray(held[k]).save(
            folder / "images" / f"digit_{held_labels[k]}_{k:03d}.png", optimize=True)
    digits_data.update_held_out(folder / "held_out.npz", digits_images=held,
                                digits_labels=held_labels)


if __name__ == "__main__":
    main()
