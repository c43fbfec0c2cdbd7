#!/usr/bin/env python3
"""Peak memory of ort-quantize: each of its processes by itself, on a model with large external data.

usage: check_quantize_memory.py TOOLS [--model FILE] [--layers N --words N --inner N] [--only WORD]

Without --model the model is made (llama_shape.py) of numbers drawn from a seed: weights of zeros would all be one, merged
before anything reads them. --layers 10 are 2.2 GB, beyond what 31 bits count. Bounds: converting (the tool's first
process) 1.2 times the largest tensor and 64 MB; each process behind it, those that calibrate, make samples up, run the
float model and check the file, what ort-run takes of the model and 64 MB. The verb calibrate converts nothing: its
first process runs the model. --times multiplies all bounds: with 0.1 each must trip. Exit status 1 where one is
exceeded.
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
SAMPLES = ["--random", "1", "--samples", "2"]
# Words behind the verb, the fewest processes.
VERBS = ((["weights"], LEAST_PROCESSES), (["dynamic"], LEAST_PROCESSES), (["static", *SAMPLES], LEAST_PROCESSES),
         (["weights", "--method", "hqq"], LEAST_PROCESSES), (["weights", "--method", "gptq", *SAMPLES], LEAST_PROCESSES),
         (["calibrate", *SAMPLES], 2), (["static", "--ranges", "made.json"], LEAST_PROCESSES))


def largest_tensor(model):
    import onnx
    return max(4 * int(onnx.numpy_helper.np.prod(t.dims)) for t in onnx.load(model, load_external_data=False)
               .graph.initializer)


def make_model(folder, options):
    script = pathlib.Path(__file__).with_name("llama_shape.py")
    shape = [f"--{name}={getattr(options, name)}" for name in ("layers", "hidden", "inner", "words")]
    subprocess.run([sys.executable, script, folder, *shape], check=True)
    return folder / "model.onnx"


def check(tools, model, folder, options):
    limit = 1.2 * largest_tensor(model) + ROOM
    quiet = {"stdout": subprocess.DEVNULL}
    status, peaks = process_peaks.run([tools / "ort-run", model, "--random", "1", "-q"], **quiet)
    if status:
        sys.exit(f"ort-run: status {status}")
    run = max(peaks.values()) + ROOM
    failed = 0
    for (verb, *words), least in VERBS:
        if options.only and not {verb, *(w.strip("-") for w in words)} & {*options.only}:
            continue
        words = [folder / w if w == "made.json" else w for w in words]
        output = folder / ("made.json" if verb == "calibrate" else "made.onnx")
        command = [tools / "ort-quantize", verb, model, *words, "-o", output, "-q", "--force"]
        what = " ".join([verb, *(w for w in words if w in ("hqq", "gptq", "--ranges"))])
        status, peaks = process_peaks.run(command, **quiet)
        if len(peaks) < least:
            failed += 1
            print(f"not ok {what}: {len(peaks)} processes were measured (status {status})")
        for number, peak in enumerate(peaks.values()):
            allowed = options.times * (run if number or verb == "calibrate" else limit)
            good = status == 0 and peak <= allowed
            failed += not good
            print(f"{'ok' if good else 'not ok'} {what}, process {number + 1}: {peak / MEGABYTE:.0f} MB, "
                  f"at most {allowed / MEGABYTE:.0f}{f' (status {status})' if status else ''}", flush=True)
    return failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tools", type=pathlib.Path)
    parser.add_argument("--model", type=pathlib.Path)
    parser.add_argument("--times", type=float, default=1)
    parser.add_argument("--only", action="append", help="a word of rows: static, hqq, ranges")
    for name, value in dict(layers=2, hidden=2048, inner=5632, words=26000).items():
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as own:
        folder = pathlib.Path(own)
        model = options.model or make_model(folder / "net", options)
        failed = check(options.tools, model, folder, options)
    print(f"{'passed' if not failed else f'{failed} exceeded'}")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
