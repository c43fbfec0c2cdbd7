#!/usr/bin/env python3
"""Weights of 4 bits in blocks of 32: what ort-quantize makes of a byte-level language model beside what
onnxruntime's MatMulNBitsQuantizer makes of it, in one run.

usage: bench_weights.py FOLDER_OF_TOOLS MODEL

Each file runs in onnxruntime over tests/bench/texts/read.txt, in windows of 256 bytes. Told are the ratio of
signal to noise of the logits in dB, the mean negative log likelihood of the next byte, and seconds taken.
Calibration, where a method has it, reads tests/bench/texts/calibrate.txt. onnxruntime's GPTQ asks for torch
where it has numpy arrays in hand: an empty module stands in where torch can't be had; its HQQ computes with
torch, and is left out then. Exit status 1: a gate was missed.
"""
import argparse
import logging
import contextlib
import importlib.util
import io
import pathlib
import subprocess
import sys
import tempfile
import time
import types

import numpy as np
import onnx
import onnxruntime

WINDOW, PAST = 256, (1, 2, 0, 48)
SAMPLED = ("awq", "gptq")
TEXTS = pathlib.Path(__file__).resolve().parent.parent / "bench" / "texts"
has_torch = importlib.util.find_spec("torch") is not None
if not has_torch:
    sys.modules["torch"] = types.ModuleType("torch")
    sys.modules["torch"].__spec__ = importlib.util.spec_from_loader("torch", None)
from onnxruntime.quantization import CalibrationDataReader  # noqa: E402
from onnxruntime.quantization import matmul_nbits_quantizer as peer  # noqa: E402


def windows(name):
    text = (TEXTS / name).read_bytes()
    return [np.frombuffer(text[i:i + WINDOW], np.uint8) for i in range(0, len(text), WINDOW)]


def feeds(piece):
    made = {"input_ids": piece[None].astype(np.int64), "position_ids": np.arange(len(piece))[None]}
    return made | {f"past_{kind}_{i}": np.zeros(PAST, np.float32) for i in range(4) for kind in "kv"}


class Reader(CalibrationDataReader):
    def __init__(self):
        self.left = windows("calibrate.txt")

    def get_next(self):
        return feeds(self.left.pop(0)) if self.left else None


def logits(path):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return [session.run(["logits"], feeds(piece))[0][0].astype(np.float64) for piece in windows("read.txt")]


def likelihood(parts):
    costs = []
    for piece, scores in zip(windows("read.txt"), parts):
        top = scores.max(-1, keepdims=True)
        log = scores - top - np.log(np.exp(scores - top).sum(-1, keepdims=True))
        costs += [-log[i, piece[i + 1]] for i in range(len(piece) - 1)]
    return float(np.mean(costs))


def told(name, path, reference, seconds):
    parts = logits(path)
    noise = sum(((a - b) ** 2).sum() for a, b in zip(reference, parts))
    ratio = 10 * np.log10(sum((a ** 2).sum() for a in reference) / noise)
    print(f"{name:44} {ratio:8.3f} dB {likelihood(parts):8.4f} nats {seconds:7.2f} s", flush=True)
    return ratio


def theirs(model, folder, reference):
    """The best without samples, and the best of all."""
    free, best = -np.inf, -np.inf
    for symmetric in (True, False):
        kinds = {"default": None, "RTN": peer.RTNWeightOnlyQuantConfig(),
                 "k_quant": peer.KQuantWeightOnlyQuantConfig()}
        if has_torch:
            kinds["HQQ"] = peer.HQQWeightOnlyQuantConfig(block_size=32)
        for mse in (False, True):
            for order in (False, True):
                kinds[f"GPTQ mse={mse:d} actorder={order:d}"] = peer.GPTQWeightOnlyQuantConfig(
                    calibration_data_reader=Reader(), block_size=32, mse=mse, actorder=order)
        for kind, config in kinds.items():
            made = peer.MatMulNBitsQuantizer(onnx.load(model), block_size=32, is_symmetric=symmetric,
                                             algo_config=config)
            begin = time.monotonic()
            with contextlib.redirect_stdout(io.StringIO()):
                made.process()
            seconds = time.monotonic() - begin
            onnx.save(made.model.model, folder / "peer.onnx")
            ratio = told(f"onnxruntime {kind}, {'symmetric' if symmetric else 'asymmetric'}",
                         folder / "peer.onnx", reference, seconds)
            best = max(best, ratio)
            free = free if "GPTQ" in kind else max(free, ratio)
    return free, best


def ours(tools, model, folder, reference):
    samples = folder / "samples"
    samples.mkdir()
    for i, piece in enumerate(windows("calibrate.txt")):
        np.savez(samples / f"{i:03}.npz", **feeds(piece))
    free, best = -np.inf, -np.inf
    for method in ("nearest", "hqq", "awq", "gptq"):
        for flags in ([], ["--asymmetric-weights"]):
            command = [tools / "ort-quantize", "weights", model, "-o", folder / "ours.onnx", "--method", method,
                       "-i", samples, *flags]
            begin = time.monotonic()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            seconds = time.monotonic() - begin
            ratio = told(f"ort-quantize {method} {' '.join(flags)}", folder / "ours.onnx", reference, seconds)
            best = max(best, ratio)
            free = free if method in SAMPLED else max(free, ratio)
    return free, best


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tools", type=pathlib.Path)
    parser.add_argument("model", type=pathlib.Path)
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    reference = logits(args.model)
    print(f"{'float':44} {'':8}    {likelihood(reference):8.4f} nats")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        their_free, their_best = theirs(args.model, folder, reference)
        our_free, our_best = ours(args.tools, args.model, folder, reference)
    gates = {"without samples, at least 0.1 dB above its best without": our_free - their_free >= 0.1,
             "with samples, at least 2 dB above its best without": our_best - their_free >= 2}
    print(f"without samples: {our_free - their_free:+.3f} dB; with: {our_best - their_free:+.3f} dB, "
          f"beside its best with samples {our_best - their_best:+.3f} dB")
    for gate, held in gates.items():
        print("held" if held else "MISSED", gate)
    return 0 if all(gates.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
