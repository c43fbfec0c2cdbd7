#!/usr/bin/env python3
"""Sizes of the files that ort-quantize writes, each against a limit.

usage: check_quantize_sizes.py [--models DIR] [--topologies DIR] [--times FACTOR] TOOLS

A file of int8 is at most 0.27 of the float file where weights are most of it; small models, whose names and nodes
weigh as much as their weights, have limits of their own, a little above what they reach. Weights of 4 bits in blocks
of 32, symmetric, are at most 0.16 of the float weights that they stand for. --times multiplies all limits: with 0.9
each must trip. A model that isn't there is skipped, in words; with CI=true that is a failure. Closes with "N passed,
N failed, N skipped".
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

import onnx

ROOT = pathlib.Path(__file__).resolve().parents[2]
MADE_UP = ["--random", "1", "--samples", "1"]
HEAVY, FOUR_BITS = 0.27, 0.16
# The folder of the model, its verb, the limit.
FILES = [
    ("topologies", "mobilenet_v2", "static", HEAVY),
    ("topologies", "resnet50", "static", HEAVY),
    ("topologies", "bert_base", "dynamic", HEAVY),
    ("topologies", "minilm_l6_v2", "dynamic", HEAVY),
    ("models", "efficientnet_lite0", "static", HEAVY),
    ("models", "squeezenet_tensor_input", "static", HEAVY),
    ("models", "ppocrv4_rec", "static", 0.28),  # a list of characters and tables of float stay
    ("models", "mlperf_tiny_resnet8_fp32", "static", 0.35),
    ("models", "mlperf_tiny_vww_fp32", "static", 0.37),
    ("own", "digits", "static", 0.29),
]
BLOCKS = [("models", "llama_byte_2m_trained"), ("own", "digits")]


def find(args, where, name):
    path = {"topologies": args.topologies / name / "model.onnx", "models": args.models / name / "model.onnx",
            "own": ROOT / "models" / f"{name}.onnx"}[where]
    return path if path.exists() else None


def quantize(args, verb, path, made, *options):
    done = subprocess.run([args.tools / "ort-quantize", verb, path, *options, "-o", made, "--quiet", "--force"],
                          capture_output=True, text=True)
    return done.stderr.strip() if done.returncode else None


def file_ratio(args, verb, path, made):
    why = quantize(args, verb, path, made, *(MADE_UP if verb == "static" else []))
    return why, 0 if why else made.stat().st_size / path.stat().st_size


def block_ratio(args, path, made):
    """What MatMulNBits reads beside its activations, of the bytes that those weights have in float."""
    why = quantize(args, "weights", path, made, "--bits", "4", "--block-size", "32")
    if why:
        return why, 0
    graph, seen, coded, floats = onnx.load(made).graph, set(), 0, 0
    stored = {t.name: t for t in graph.initializer}
    for node in graph.node:
        if node.op_type == "MatMulNBits" and node.input[1] not in seen:
            seen.add(node.input[1])
            sizes = {a.name: a.i for a in node.attribute}
            floats += 4 * sizes["N"] * sizes["K"]
            coded += sum(len(onnx.numpy_helper.to_array(stored[i]).tobytes()) for i in node.input[1:4] if i)
    return (None, coded / floats) if floats else ("no weight became codes", 0)


def rows(args, made):
    for where, name, verb, limit in FILES:
        path = find(args, where, name)
        yield f"{name} {verb}, of the float file", limit, path and (lambda: file_ratio(args, verb, path, made))
    for where, name in BLOCKS:
        path = find(args, where, name)
        yield f"{name} weights, 4 bits in blocks of 32", FOUR_BITS, path and (lambda: block_ratio(args, path, made))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", type=pathlib.Path, default=ROOT.parent / "shared" / "models")
    parser.add_argument("--topologies", type=pathlib.Path, default=ROOT / "build" / "topologies")
    parser.add_argument("--times", type=float, default=1)
    parser.add_argument("tools", type=pathlib.Path)
    args = parser.parse_args()
    count = {"passed": 0, "failed": 0, "skipped": 0}
    with tempfile.TemporaryDirectory() as folder:
        for what, limit, measure in rows(args, pathlib.Path(folder) / "made.onnx"):
            if not measure:
                missing = "failed" if os.environ.get("CI") == "true" else "skipped"
                count[missing] += 1
                print(f"{'not ok' if missing == 'failed' else missing} {what}: the model isn't there")
                continue
            why, ratio = measure()
            good = not why and ratio <= limit * args.times
            count["passed" if good else "failed"] += 1
            print(f"{'ok' if good else 'not ok'} {what}: {why or f'{ratio:.4f}, at most {limit * args.times:.3f}'}",
                  flush=True)
    print(", ".join(f"{n} {word}" for word, n in count.items()))
    return count["failed"] != 0


if __name__ == "__main__":
    sys.exit(main())
