#!/usr/bin/env python3
"""check_bundled.py - measures the figures of models/README.md again, through ort-run.

Accuracy of the two digit classifiers and PSNR of the upscaler over bicubic, on models/held_out.npz; the
floors are the figures that the training scripts printed, less one wrong digit and 0.05 dB.
"""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
FLOORS = {"digits": 0.983, "trees": 0.961, "upscale": 0.98}


def run(model, name, array, output):
    with tempfile.TemporaryDirectory() as folder:
        source, target = f"{folder}/x.npy", f"{folder}/y.npy"
        np.save(source, array)
        subprocess.run([ROOT / "build/bin/ort-run", ROOT / "models" / model, "-i", f"{name}={source}",
                        "-o", f"{output}={target}"], check=True)
        return np.load(target)


def psnr(a, b):
    return 10 * np.log10(1 / np.mean((a.astype(np.float64) - b) ** 2))


def main():
    held = np.load(ROOT / "models/held_out.npz")
    images = (held["digits_images"].astype(np.float32) / 255).reshape(-1, 1, 8, 8)
    truth = held["digits_labels"]
    results = {
        "digits": np.mean(run("digits.onnx", "image", images, "probabilities").argmax(1) == truth),
        "trees": np.mean(run("digits_trees.onnx", "pixels", images.reshape(-1, 64), "label") == truth),
    }
    gains = []
    for small, large, bicubic in zip(held["upscale_small"], held["upscale_large"],
                                     held["upscale_bicubic_psnr"]):
        x = np.ascontiguousarray(small.astype(np.float32).transpose(2, 0, 1)[None] / 255)
        y = run("upscale.onnx", "image", x, "upscaled")[0].transpose(1, 2, 0)
        gains.append(psnr(y, large.astype(np.float64) / 255) - bicubic)
    results["upscale"] = float(np.mean(gains))
    failed = 0
    for name, value in results.items():
        good = value >= FLOORS[name]
        failed += not good
        unit = "dB over bicubic" if name == "upscale" else "of the held-out digits"
        print(f"{'ok' if good else 'not ok'} {name}: {value:.4f} {unit}, at least {FLOORS[name]}")
    print(f"{len(results) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


sys.exit(main())
