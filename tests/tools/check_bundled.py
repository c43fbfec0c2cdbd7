#!/usr/bin/env python3
"""Measure the bundled models again, through ort-run, on the held-out data beside them.

usage: check_bundled.py        (from the root of the tree, after make)

Accuracy and PSNR must reach what models/README.md states; the labels in the names of the sample
images must be those of the held-out arrays. Needs numpy; prints "ok NAME" and "not ok NAME: why" lines
and closes with "N passed, N failed, N skipped".
"""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUN = ROOT / "build/bin/ort-run"
MODELS = ROOT / "models"
results = {True: 0, False: 0}


def report(ok, name, text):
    results[bool(ok)] += 1
    print(f"ok {name}: {text}" if ok else f"not ok {name}: {text}")


def run(model, folder, **inputs):
    """Outputs of a model by name."""
    source, target = folder / "in.npz", folder / "out.npz"
    np.savez(source, **inputs)
    subprocess.run([RUN, MODELS / model, source, "-o", target], check=True)
    with np.load(target) as outputs:
        return {name: outputs[name] for name in outputs.files}


def check_digits(folder, held):
    pixels = held["digits_images"].astype(np.float32) / np.float32(255)
    labels = held["digits_labels"]
    out = run("digits.onnx", folder, image=pixels[:, None])["probabilities"]
    accuracy = (out.argmax(1) == labels).mean()
    report(accuracy >= 0.98, "digits.onnx", f"accuracy {accuracy:.4f}, at least 0.98 wanted")
    report(np.allclose(out.sum(1), 1, atol=1e-5), "digits.onnx sums", "probabilities sum to 1")
    out = run("digits_trees.onnx", folder, pixels=pixels.reshape(len(pixels), 64))
    accuracy = (out["label"] == labels).mean()
    report(accuracy >= 0.96, "digits_trees.onnx", f"accuracy {accuracy:.4f}, at least 0.96 wanted")
    agree = (out["scores"].argmax(1) == out["label"]).mean()
    report(agree == 1, "digits_trees.onnx labels", f"label has the best score in {agree:.4f}")


def check_upscale(folder, held):
    gains = []
    for small, large, bicubic in zip(held["upscale_small"], held["upscale_large"],
                                     held["upscale_bicubic_psnr"]):
        image = small.transpose(2, 0, 1)[None].astype(np.float32) / np.float32(255)
        out = run("upscale.onnx", folder, image=image)["upscaled"]
        target = large.transpose(2, 0, 1)[None] / 255.0
        gains.append(10 * np.log10(1 / np.mean((out - target) ** 2)) - bicubic)
    report(min(gains) > 0.2 and np.mean(gains) > 0.9, "upscale.onnx",
           f"PSNR above bicubic by {np.mean(gains):.3f} dB (least {min(gains):.3f}); "
           "0.9 (least 0.2) wanted")


def check_images(held):
    names = sorted(p.stem for p in (MODELS / "images").glob("digit_*_*.png"))
    wrong = [n for n in names
             if int(n.split("_")[1]) != held["digits_labels"][int(n.split("_")[2])]]
    report(len(names) >= 24 and not wrong, "images", f"{len(names)} digits, wrong labels: {wrong}")


def main():
    with np.load(MODELS / "held_out.npz") as archive, tempfile.TemporaryDirectory() as scratch:
        held = {name: archive[name] for name in archive.files}
        folder = pathlib.Path(scratch)
        for name, check in (("digits", lambda: check_digits(folder, held)),
                            ("upscale", lambda: check_upscale(folder, held)),
                            ("images", lambda: check_images(held))):
            try:
                check()
            except (subprocess.CalledProcessError, OSError, KeyError, ValueError) as error:
                report(False, name, str(error))
    print(f"{results[True]} passed, {results[False]} failed, 0 skipped")
    return results[False] != 0


if __name__ == "__main__":
    sys.exit(main())
