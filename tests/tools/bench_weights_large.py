#!/usr/bin/env python3
"""Weights of 4 bits in blocks of 32 of a large model: time and memory of the whole command, its report included.

usage: bench_weights_large.py TOOLS [--folder DIR | --made DIR] [--only hqq|gptq] [--samples N] [--tokens N] [--layers N ...]

The model is made first, random weights of TinyLlama's shape (llama_shape.py: 1.1 billion parameters, 4.4 GB beside the
.onnx file), and gone afterwards; it needs 15 GB of disk under --folder. With --made it stays there, and is taken from
there the next time. GPTQ is calibrated on --samples texts of --tokens random words each; HQQ needs none, and its report
makes up its own. Goals: HQQ-like in 60 s, GPTQ in 10 minutes; the process that converts within 1.2 times the largest
tensor and 64 MB, every other one within what ort-run takes of the model and such a sample, and 64 MB. Exit status 1
where one is missed. Times count only where the machine is free: seconds of processors are told beside them.
"""
import argparse
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np

import process_peaks

MEGABYTE = 1 << 20
ROOM = 64 * MEGABYTE
SHAPE = dict(layers=22, hidden=2048, inner=5632, heads=32, groups=4, words=32000)
LIMITS = {"hqq": 60, "gptq": 600}
SAMPLED = ("gptq",)


def measured(command):
    """Seconds, processor seconds, and the peaks of its processes, first to last; ends where it failed."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        status, peaks = process_peaks.run(command, stdout=said, stderr=subprocess.STDOUT)
        said.seek(0)
        text = said.read()
    seconds, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    if status:
        sys.exit(f"{' '.join(map(str, command))}: status {status}\n{text}")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, used, list(peaks.values()), text


class Gates:
    def __init__(self):
        self.missed = 0

    def __call__(self, what, value, limit, unit):
        met = value <= limit
        self.missed += not met
        print(f"  {what:44}{value:9.1f} {unit:3} at most {limit:8.1f}  {'met' if met else 'MISSED'}", flush=True)


def make(folder, options):
    if (folder / "set").exists():
        return folder / "model.onnx"
    folder.mkdir(parents=True, exist_ok=True)
    need = 15e9 * options.layers / SHAPE["layers"]
    free = shutil.disk_usage(folder).free
    if free < need:
        sys.exit(f"{folder} has {free / 1e9:.0f} GB left, {need / 1e9:.0f} GB are needed")
    shape = [f"--{name}={getattr(options, name)}" for name in SHAPE]
    subprocess.run([sys.executable, pathlib.Path(__file__).with_name("llama_shape.py"), folder, *shape], check=True)
    draw = np.random.default_rng(2)
    (folder / "set").mkdir()  # last: all is there
    for k in range(options.samples):
        np.savez(folder / "set" / f"{k:03}.npz", ids=draw.integers(0, options.words, (1, options.tokens)))
    return folder / "model.onnx"


def check(tools, folder, options):
    model, gates = make(folder, options), Gates()
    largest = 4 * options.hidden * max(options.words, options.inner)
    sample = sorted((folder / "set").iterdir())[0]
    seconds, used, peaks, _ = measured([tools / "ort-run", model, "-i", sample, "-q"])
    print(f"float run: {seconds:.1f} s, processors {used:.1f} s, {peaks[0] / MEGABYTE:.0f} MB", flush=True)
    allowed = (max(peaks) + ROOM) / MEGABYTE
    for method, limit in LIMITS.items():
        if options.only not in (None, method):
            continue
        made = folder / f"{method}.onnx"
        samples = ["-i", folder / "set"] if method in SAMPLED else []
        seconds, used, peaks, said = measured([tools / "ort-quantize", "weights", model, "--method", method, *samples,
                                               "-o", made])
        print(f"{method}: processors {used:.1f} s")
        print("".join(f"  {line}\n" for line in said.splitlines() if line.split()[:1] in
                      (["logits"], ["size"], ["latency"])), end="")
        gates("whole command", seconds, limit, "s")
        gates("converting", peaks[0] / MEGABYTE, (1.2 * largest + ROOM) / MEGABYTE, "MB")
        for k, peak in enumerate(peaks[1:], 2):
            gates(f"process {k}", peak / MEGABYTE, allowed, "MB")
        made.unlink()
        (folder / f"{method}.onnx.data").unlink(missing_ok=True)
    return gates.missed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tools", type=pathlib.Path)
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--made", type=pathlib.Path)
    parser.add_argument("--only", choices=LIMITS)
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=128)
    for name, value in SHAPE.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    if options.made:
        return check(options.tools.resolve(), options.made, options) != 0
    with tempfile.TemporaryDirectory(dir=options.folder) as own:
        return check(options.tools.resolve(), pathlib.Path(own), options) != 0


if __name__ == "__main__":
    sys.exit(main())
