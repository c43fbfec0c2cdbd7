#!/usr/bin/env python3
"""Train models/upscale.onnx: a network that doubles a photograph's width and height.

usage: train_upscale.py [MODELS_DIR]

The output is a cubic resize plus a correction that three convolutions learn (sub-pixel form:
twelve planes at low resolution, then DepthToSpace). Trained on the left part (columns 0-419) of
scikit-learn's two sample photographs, judged on crops of the right part (columns 430-639), whose
PSNR is printed beside that of Pillow's bicubic resize. Writes upscale.onnx, images/photo.png (a
crop of the right part) and the arrays upscale_* of held_out.npz. Needs numpy, scikit-learn, onnx
and pillow, and about four minutes on one core.
"""
import os
import pathlib
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from PIL import Image
from sklearn.datasets import load_sample_images

import digits_data
from numpy_net import Conv, DepthToSpace, Network, Relu

STEPS, BATCH, SIDE, SPLIT, HELD_FROM = 4500, 8, 32, 420, 430
CROP = 96
# The crops of a grid over the right part that hold detail: the others are sky and blur, which
# bicubic already restores to 49-52 dB.
HELD_CROPS = [(0, 96, 528), (0, 192, 432), (0, 192, 528), (0, 288, 432), (0, 288, 528),
              (1, 96, 432), (1, 192, 432)]


def halve(image):
    return np.asarray(Image.fromarray(image).resize(
        (image.shape[1] // 2, image.shape[0] // 2), Image.Resampling.BICUBIC))


def cubic_matrix(size):
    """Rows: 2*size output positions of ONNX's Resize (cubic, a = -0.5, half_pixel, edges held)."""
    matrix = np.zeros((2 * size, size), np.float64)
    for row in range(2 * size):
        x = (row + 0.5) / 2 - 0.5
        base = int(np.floor(x))
        for tap in range(base - 1, base + 3):
            d = abs(x - tap)
            w = (1.5 * d - 2.5) * d * d + 1 if d <= 1 else ((-0.5 * d + 2.5) * d - 4) * d + 2
            matrix[row, min(max(tap, 0), size - 1)] += w
    return matrix.astype(np.float32)


def cubic(x):
    return np.einsum("ih,nchw,jw->ncij", cubic_matrix(x.shape[2]), x, cubic_matrix(x.shape[3]),
                     optimize=True)


def planes(image):
    return image.transpose(2, 0, 1)[None].astype(np.float32) / np.float32(255)


def psnr(a, b):
    return 10 * np.log10(1 / np.mean((a.astype(np.float64) - b) ** 2))


def sample(rng, pairs):
    """A batch of random patches, turned and mirrored."""
    low, high = [], []
    for _ in range(BATCH):
        small, large = pairs[rng.integers(len(pairs))]
        y = rng.integers(small.shape[1] - SIDE + 1)
        x = rng.integers(small.shape[2] - SIDE + 1)
        a = small[:, y:y + SIDE, x:x + SIDE]
        b = large[:, 2 * y:2 * (y + SIDE), 2 * x:2 * (x + SIDE)]
        turns, flip = rng.integers(4), rng.integers(2)
        a, b = np.rot90(a, turns, (1, 2)), np.rot90(b, turns, (1, 2))
        low.append(a[:, :, ::-1] if flip else a)
        high.append(b[:, :, ::-1] if flip else b)
    return np.ascontiguousarray(low), np.ascontiguousarray(high)


def train(photos):
    rng = np.random.default_rng(3)
    net = Network([Conv(rng, 3, 24, 5), Relu(), Conv(rng, 24, 24, 3), Relu(),
                   Conv(rng, 24, 12, 3, gain=0.01), DepthToSpace()])
    pairs = []
    for photo in photos:
        left = photo[:photo.shape[0] // 2 * 2, :SPLIT]
        pairs.append((planes(halve(left))[0], planes(left)[0]))
    for step in range(STEPS):
        low, high = sample(rng, pairs)
        error = net.forward(low) + cubic(low) - high
        net.backward((2 * 255 / error.size * error).astype(np.float32))
        net.adam(2e-3 * 0.5 * (1 + np.cos(np.pi * step / STEPS)))
        if step % 200 == 0:
            print(f"upscale: step {step}, batch PSNR {-10 * np.log10(np.mean(error ** 2)):.2f} dB",
                  file=sys.stderr)
    return net


def export(net, path):
    conv = [net.layers[i] for i in (0, 2, 4)]
    weights = {}
    for k, layer in enumerate(conv, 1):
        weights[f"conv{k}.weight"], weights[f"conv{k}.bias"] = layer.w, layer.b
    weights.update(scales=np.array([1, 1, 2, 2], np.float32), zero=np.float32(0),
                   one=np.float32(1))
    node, same = helper.make_node, {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    nodes = [
        node("Conv", ["image", "conv1.weight", "conv1.bias"], ["c1"], "conv1",
             kernel_shape=[5, 5], pads=[2, 2, 2, 2]),
        node("Relu", ["c1"], ["r1"], "relu1"),
        node("Conv", ["r1", "conv2.weight", "conv2.bias"], ["c2"], "conv2", **same),
        node("Relu", ["c2"], ["r2"], "relu2"),
        node("Conv", ["r2", "conv3.weight", "conv3.bias"], ["c3"], "conv3", **same),
        node("DepthToSpace", ["c3"], ["correction"], "shuffle", blocksize=2, mode="DCR"),
        node("Resize", ["image", "", "scales"], ["cubic"], "cubic", mode="cubic",
             cubic_coeff_a=-0.5, coordinate_transformation_mode="half_pixel"),
        node("Add", ["cubic", "correction"], ["sum"], "add"),
        node("Clip", ["sum", "zero", "one"], ["upscaled"], "clip"),
    ]
    graph = helper.make_graph(
        nodes, "upscale",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, "h", "w"])],
        [helper.make_tensor_value_info("upscaled", TensorProto.FLOAT, [1, 3, "2*h", "2*w"])],
        [numpy_helper.from_array(np.ascontiguousarray(w), name) for name, w in weights.items()],
        doc_string="Doubles a photograph; RGB planes, 0 to 1.")
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8,
                              producer_name="train_upscale.py")
    onnx.checker.check_model(model)
    onnx.save(model, path)


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else
                          pathlib.Path(__file__).resolve().parents[2] / "models")
    (folder / "images").mkdir(parents=True, exist_ok=True)
    photos = load_sample_images().images
    net = train(photos)
    ours, bicubic, low, high = [], [], [], []
    for which, y, x in HELD_CROPS:
        assert x >= HELD_FROM
        large = np.ascontiguousarray(photos[which][y:y + CROP, x:x + CROP])
        small = halve(large)
        image = planes(small)
        target = planes(large)
        result = np.clip(net.forward(image) + cubic(image), 0, 1)
        plain = planes(np.asarray(Image.fromarray(small).resize((CROP, CROP),
                                                               Image.Resampling.BICUBIC)))
        ours.append(psnr(result, target))
        bicubic.append(psnr(plain, target))
        low.append(small)
        high.append(large)
        print(f"upscale: crop {which},{y},{x}: {ours[-1]:.2f} dB, bicubic {bicubic[-1]:.2f} dB")
    print(f"upscale: held-out PSNR {np.mean(ours):.3f} dB, bicubic {np.mean(bicubic):.3f} dB, "
          f"gain {np.mean(ours) - np.mean(bicubic):.3f} dB")
    export(net, folder / "upscale.onnx")
    Image.fromarray(np.ascontiguousarray(photos[0][250:410, 450:610])).save(
        folder / "images" / "photo.png", optimize=True)
    digits_data.update_held_out(
        folder / "held_out.npz", upscale_small=np.stack(low), upscale_large=np.stack(high),
        upscale_bicubic_psnr=np.array(bicubic))


if __name__ == "__main__":
    main()
