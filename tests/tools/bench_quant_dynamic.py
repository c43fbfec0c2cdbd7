#!/usr/bin/env python3
"""ort-quantize dynamic beside onnxruntime.quantization's quantize_dynamic, on every float model of
MODELS and every filled topology.

usage: bench_quant_dynamic.py BIN SCRATCH DIR... [--only GLOB,...] [--options "OPTION ..."]

Outputs are measured as bench_quant.py does, against the float model in onnxruntime, on samples that
are drawn like the recorded ones. Theirs are four files, {QInt8, QUInt8} x {per channel or not}, with
EnableSubgraph, of the model as quant_pre_process leaves it where the model itself is refused. Ours
runs in onnxruntime and here, and must pass onnx.checker. A model in which nothing becomes integer
differs in nothing: "-". Sizes are files with their data, ours over float.

The last lines are the gates: ours at least as near as the best of theirs on every model, and 1 dB
nearer in the median. Exit status 1 where one says no, or a file doesn't load.
"""
import argparse
import fnmatch
import json
import logging
import pathlib
import statistics
import subprocess
import sys

import onnx
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.quantization.shape_inference import quant_pre_process

from bench_quant import Reference, attempt

KINDS = {"QInt8": QuantType.QInt8, "QUInt8": QuantType.QUInt8}
MULTIPLIES = {"Conv", "MatMul", "Gemm", "LSTM", "Attention", "Gather"}
MARGIN_DB = 1


def operators(graph):
    for node in graph.node:
        yield node.op_type
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from operators(attribute.g)


def applies(path):
    model = onnx.load(str(path), load_external_data=False)
    types = set(operators(model.graph))
    floats = not any(t.data_type == onnx.TensorProto.FLOAT16 for t in model.graph.initializer)
    return bool(types & MULTIPLIES) and floats and \
        not any("Quantize" in t or "QLinear" in t or "NBits" in t or "Integer" in t for t in types)


def write_theirs(source, path, kind, per_channel):
    options = {"per_channel": per_channel, "weight_type": KINDS[kind],
               "extra_options": {"EnableSubgraph": True}}
    try:
        quantize_dynamic(str(source), str(path), **options)
    except Exception:  # pylint: disable=broad-except
        prepared = path.with_name("prepared.onnx")
        quant_pre_process(str(source), str(prepared), skip_symbolic_shape=True)
        quantize_dynamic(str(prepared), str(path), **options)


def measure_theirs(reference, path, kind, per_channel):
    if not path.exists():
        write_theirs(reference.path, path, kind, per_channel)
    return reference.in_onnxruntime(path)


def best_of_theirs(reference, home):
    """(dB, name), or (None, why) where it makes none that runs."""
    found, why = [], None
    for kind in KINDS:
        for per_channel in (False, True):
            name = f"{kind}{' per channel' if per_channel else ''}"
            path = home / f"their_{kind}_{int(per_channel)}.onnx"
            value, reason = attempt(measure_theirs, reference, path, kind, per_channel)
            why = why or reason
            if value is not None:
                found.append((value, name))
    return max(found) if found else (None, why)


def make_ours(tools, source, path, options):
    subprocess.run([tools / "ort-quantize", "dynamic", source, "-o", path, "-q", *options],
                   check=True, stdout=subprocess.DEVNULL)
    onnx.checker.check_model(str(path))


def size_of(path):
    return sum(p.stat().st_size for p in path.parent.glob(path.name + "*"))


def integers_in(path):
    model = onnx.load(str(path), load_external_data=False)
    return sum("Integer" in t or t in ("DynamicQuantizeLSTM", "QAttention")
               for t in operators(model.graph))


def measure(tools, folder, home, options):
    """A row: name, ours, here, theirs, which, size; or None where the model doesn't run."""
    home.mkdir(parents=True, exist_ok=True)
    reference = Reference(folder, home)
    ours = home / "ours.onnx"
    make_ours(tools, reference.path, ours, options)
    near, why = attempt(reference.in_onnxruntime, ours)
    here, _ = attempt(reference.here, ours, tools)
    best, which = best_of_theirs(reference, home)
    return {"name": folder.name, "ours": near, "why": why, "here": here, "best": best,
            "which": which, "ratio": size_of(ours) / size_of(reference.path),
            "integers": integers_in(ours)}


def shown(value):
    return "-" if value is None else f"{value:.2f}"


def print_row(row):
    print(f"{row['name']:28} {shown(row['ours']):>7} {shown(row['here']):>7} "
          f"{shown(row['best']):>7} {row['integers']:5d} {row['ratio']:6.3f}  "
          f"{row['why'] or row['which']}", flush=True)


def judge(rows, failed):
    """True where every gate passes."""
    both = [r for r in rows if r["ours"] is not None and r["best"] is not None]
    below = [r["name"] for r in both if r["ours"] < r["best"]]
    median = statistics.median(r["ours"] - r["best"] for r in both) if both else 0
    changed = [r["ours"] - r["best"] for r in both if r["integers"]]
    print(f"not below the best of theirs: {len(both) - len(below)} of {len(both)}"
          f"{'; below: ' + ', '.join(below) if below else ''}")
    print(f"median above it: {median:.2f} dB (asked for: {MARGIN_DB}); of {len(changed)} models "
          f"with integers {statistics.median(changed) if changed else 0:.2f} dB")
    for name, why in failed:
        print(f"failed: {name}: {why}")
    return not below and not failed and median >= MARGIN_DB


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("scratch", type=pathlib.Path)
    parser.add_argument("dirs", nargs="+", type=pathlib.Path)
    parser.add_argument("--only", default="*")
    parser.add_argument("--options", default="")
    args = parser.parse_args()
    logging.disable(logging.CRITICAL)
    rows, failed = [], []
    print(f"{'model':28} {'ours':>7} {'here':>7} {'theirs':>7} {'nodes':>5} {'size':>6}  best")
    for path in sorted(p for d in args.dirs for p in d.glob("*/model.onnx")):
        name = path.parent.name
        if not any(fnmatch.fnmatch(name, glob) for glob in args.only.split(",")) or \
                not applies(path):
            continue
        try:
            row = measure(args.bin, path.parent, args.scratch / name, args.options.split())
        except Exception as error:  # pylint: disable=broad-except
            failed.append((name, str(error).strip().splitlines()[-1][:160]))
            continue
        rows.append(row)
        print_row(row)
        args.scratch.joinpath("results.json").write_text(json.dumps(rows, indent=1))
    return 0 if judge(rows, failed) else 1


if __name__ == "__main__":
    sys.exit(main())
