#!/usr/bin/env python3
"""Peak memory of ort-quantize: each of its processes by itself, on a model with large external data.

usage: check_quantize_memory.py TOOLS [--model FILE] [--layers N --words N --inner N]

Without --model the model is made (llama_shape.py), its data a hole in the file: gigabytes that the disk doesn't hold.
Bounds: converting (the tool's first process) 1.2 times the largest tensor and 64 MB; each process behind it, those that
calibrate, make samples up, run the float model and check the file, what ort-run takes of the model and 64 MB. Exit status
1 where one is exceeded.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import process_peaks

MEGABYTE = 1 << 20
ROOM = 64 * MEGABYTE
LEAST_PROCESSES = 4  # that a verb has: fewer were seen where the others were missed
VERBS = (["weights"], ["dynamic"], ["static", "--random", "1", "--samples", "2"])


def largest_tensor(model):
    import onnx
    return max(4 * int(onnx.numpy_helper.np.prod(t.dims)) for t in onnx.load(model, load_external_data=False)
               .graph.initializer)


def make_model(folder, options):
    script = pathlib.Path(__file__).with_name("llama_shape.py")
    shape = [f"--{name}={getattr(options, name)}" for name in ("layers", "hidden", "inner", "words")]
    subprocess.run([sys.executable, script, folder, *shape, "--sparse"], check=True)
    return folder / "model.onnx"


def check(tools, model, folder):
    limit = 1.2 * largest_tensor(model) + ROOM
    quiet = {"stdout": subprocess.DEVNULL}
    status, peaks = process_peaks.run([tools / "ort-run", model, "--random", "1", "-q"], **quiet)
    if status:
        sys.exit(f"ort-run: status {status}")
    run = max(peaks.values()) + ROOM
    failed = 0
    for verb in VERBS:
        output = folder / "made.onnx"
        status, peaks = process_peaks.run([tools / "ort-quantize", *verb, model, "-o", output, "-q"], **quiet)
        if len(peaks) < LEAST_PROCESSES:
            failed += 1
            print(f"not ok {verb[0]}: {len(peaks)} processes were measured (status {status})")
        for number, peak in enumerate(peaks.values()):
            allowed = run if number else limit
            good = status == 0 and peak <= allowed
            failed += not good
            print(f"{'ok' if good else 'not ok'} {verb[0]}, process {number + 1}: {peak / MEGABYTE:.0f} MB, "
                  f"at most {allowed / MEGABYTE:.0f}{f' (status {status})' if status else ''}", flush=True)
    return failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tools", type=pathlib.Path)
    parser.add_argument("--model", type=pathlib.Path)
    for name, value in dict(layers=2, hidden=2048, inner=5632, words=26000).items():
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as own:
        folder = pathlib.Path(own)
        model = options.model or make_model(folder / "net", options)
        failed = check(options.tools, model, folder)
    print(f"{'passed' if not failed else f'{failed} exceeded'}")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
