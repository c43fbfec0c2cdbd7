#!/usr/bin/env python3
"""Calibration beside onnxruntime.quantization, on the same models and samples: time and peak memory.

usage: bench_calibrate.py TOOLS MODELS_DIR [--samples N] [--threads T,...] [--rounds N] [--only GLOB]

Ours is `ort-quantize calibrate`, the whole process from its start until the file of ranges is there.
Theirs is a process of Python whose time counts from the calibrator's making (imports aside) until it
has computed its ranges, which is to its advantage. Memory is the peak less what a process held before: there after
imports, here while it waits for its model on a pipe. Histograms serve three observers here and are written once;
there each has a run.

Each row has ROUNDS turns of one and the other, and the median of each one's seconds counts: a process that comes after
another of its size finds memory that the system has at hand, the first one waits for it. With one thread seconds are
those of the processor, in which neighbours hardly count; with more, those that pass. Both are judged, one thread and as
many as there are processors, which is what both tools take by default.

Goals: histogram methods at most a fifth of time and of memory; MinMax at most 0.4 of the time, with at most 64 MB
more than ort-run's peak (whole processes); a thousand samples at most 1.1 times the memory of ten. Exit status 1 where one is missed.
"""
import argparse
import fnmatch
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import process_peaks

# Not squeezenet_tensor_input: onnx infers no types behind its ImageScaler, so that they would see its input alone.
NAMES = ["mobilenet_v2", "resnet50", "vit_tiny_patch16_224", "efficientnet_lite0", "squeezenet1_1",
         "yolox_nano", "mlperf_tiny_resnet8_fp32", "mlperf_tiny_vww_fp32"]
METHODS = {"min-max": "MinMax", "percentile": "Percentile", "entropy": "Entropy"}
MEGABYTE = 1 << 20
LOOKS = 5


def measured(command, wall, **more):
    """Seconds and peak bytes of a process. (What getrusage says of memory begins with this one's, which started it.)"""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    status, peaks = process_peaks.run(command, **more)
    seconds, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    if status:
        sys.exit(f"{' '.join(map(str, command))}: status {status}")
    if not wall:
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, max(peaks.values())


def held_by(tools):
    """Of a process that has its program and libraries, and waits for a model."""
    waiting = subprocess.Popen([tools / "ort-quantize", "calibrate", "-", "--random", "1"], stdin=subprocess.PIPE,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.3)
    held = process_peaks.peak_of(waiting.pid)
    waiting.kill()
    waiting.wait()
    return held


def find_models(folder, only):
    found = []
    for name in NAMES:
        for path in (folder / name / "model.onnx", pathlib.Path("build/topologies") / f"{name}.onnx",
                     pathlib.Path("build/topologies") / name / "model.onnx"):
            if path.exists() and fnmatch.fnmatch(name, only):
                found.append((name, path))
                break
        else:
            print(f"{name}: not here" if fnmatch.fnmatch(name, only) else f"{name}: left out")
    return found


def make_samples(path, count, folder):
    """Numbers as pictures have them: smooth, each sample of another mean and contrast."""
    import onnx
    graph = onnx.load(path, load_external_data=False).graph
    constants = {i.name for i in graph.initializer}
    [given] = [i for i in graph.input if i.name not in constants]
    dims = [d.dim_value or 1 for d in given.type.tensor_type.shape.dim]
    draw = np.random.default_rng(1)
    for k in range(count):
        x = draw.standard_normal(dims).cumsum(-1) / 8 * draw.uniform(0.2, 2) + draw.normal()
        np.save(folder / f"{k:04}.npy", x.astype(np.float32))
    return given.name


def theirs(path, name, folder, method, threads):
    """In a process of its own."""
    text = subprocess.run([sys.executable, __file__, "--worker", path, name, folder, method, str(threads)],
                          check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    return json.loads(text.splitlines()[-1])


def worker(path, name, folder, method, threads):
    import onnx.shape_inference
    import onnxruntime
    from onnxruntime.quantization import calibrate

    class Reader(calibrate.CalibrationDataReader):
        def __init__(self):
            self.files = iter(sorted(pathlib.Path(folder).iterdir()))

        def get_next(self):
            file = next(self.files, None)
            return None if file is None else {name: np.load(file)}

    make = onnxruntime.InferenceSession

    def session(model, sess_options=None, **more):
        sess_options = sess_options or onnxruntime.SessionOptions()
        sess_options.intra_op_num_threads = int(threads)
        return make(model, sess_options=sess_options, **more)

    onnxruntime.InferenceSession = session
    held = process_peaks.peak_of("self")
    with tempfile.TemporaryDirectory() as own:
        # It sees only values whose type the file tells.
        onnx.shape_inference.infer_shapes_path(path, str(pathlib.Path(own) / "inferred.onnx"))
        clock = time.monotonic if int(threads) > 1 else time.process_time
        begin = clock()
        calibrator = calibrate.create_calibrator(
            pathlib.Path(own) / "inferred.onnx", None, augmented_model_path=str(pathlib.Path(own) / "augmented.onnx"),
            calibrate_method=getattr(calibrate.CalibrationMethod, method))
        calibrator.collect_data(Reader())
        calibrator.compute_data()
        seconds = clock() - begin
    peak = process_peaks.peak_of("self")
    print(json.dumps([seconds, peak - held]))


class Table:
    def __init__(self, held):
        self.missed, self.held = 0, held
        print(f"ort-quantize holds {held / MEGABYTE:.1f} MB before its model")
        print(f"{'model':25}{'method':11}{'threads':>8}{'ours s':>8}{'theirs s':>10}{'ratio':>7}{'ours MB':>9}"
              f"{'theirs MB':>11}{'ratio':>7}{'float run MB':>14}  goals")

    def row(self, name, method, threads, own, other, run):
        ratios = own[0] / other[0], (own[1] - self.held) / other[1]
        bins = method != "min-max"
        met = ratios[0] <= (0.2 if bins else 0.4), \
            ratios[1] <= 0.2 if bins else own[1] <= run + 64 * MEGABYTE
        self.missed += met.count(False)
        word = ", ".join(what + (" met" if ok else " MISSED") for what, ok in zip(("time", "memory"), met))
        print(f"{name:25}{method:11}{threads:8}{own[0]:8.2f}{other[0]:10.2f}{ratios[0]:7.2f}{own[1] / MEGABYTE:9.1f}"
              f"{other[1] / MEGABYTE:11.0f}{ratios[1]:7.2f}{run / MEGABYTE:14.0f}  {word}", flush=True)


def median(turns):
    """The median of seconds, and the most memory."""
    seconds, peaks = zip(*turns)
    return statistics.median(seconds), max(peaks)


def compare_with(table, tools, name, path, given, folder, threads, rounds):
    """On the samples of a folder, with so many threads."""
    words = ["--threads", str(threads), "-q"]
    first = sorted(folder.iterdir())[0]
    _, run = measured([tools / "ort-run", path, "-i", f"{given}={first}", *words], threads > 1,
                      stdout=subprocess.DEVNULL)
    for method, their_method in METHODS.items():
        command = [tools / "ort-quantize", "calibrate", path, "-i", folder, "--observer", method, "-o",
                   folder.parent / "ranges.json", *words]
        turns = [(measured(command, threads > 1), theirs(path, given, folder, their_method, threads))
                 for _ in range(rounds)]
        table.row(name, method, threads, *map(median, zip(*turns)), run)


def compare(table, tools, name, path, options):
    with tempfile.TemporaryDirectory() as own:
        folder = pathlib.Path(own) / "set"
        folder.mkdir()
        given = make_samples(path, options.samples, folder)
        for threads in options.threads:
            compare_with(table, tools, name, path, given, folder, threads, options.rounds)


def many(table, tools, path, options):
    """The same process with a hundred times the samples. Ten are done within hundredths of a second, of which a look
    that comes too early misses the last megabyte: each is the most of several looks."""
    peaks = []
    for count in (10, 1000):
        found = [measured([tools / "ort-quantize", "calibrate", path, "--random", "1", "--samples", str(count), "-q",
                           "--threads", str(options.threads[0])], True, stdout=subprocess.DEVNULL) for _ in range(LOOKS)]
        peaks.append(max(peak for _, peak in found))
        print(f"{count:5} samples of {path}: {peaks[-1] / MEGABYTE:.1f} MB, {min(found)[0]:.1f} s")
    met = peaks[1] <= 1.1 * peaks[0]
    table.missed += not met
    print(f"ratio {peaks[1] / peaks[0]:.3f}: {'met' if met else 'MISSED'}")


def main():
    if sys.argv[1:2] == ["--worker"]:
        return worker(*sys.argv[2:])
    parser = argparse.ArgumentParser()
    parser.add_argument("tools", type=pathlib.Path)
    parser.add_argument("models", type=pathlib.Path)
    parser.add_argument("--samples", type=int, default=16)
    parser.add_argument("--threads", type=lambda text: [int(word) for word in text.split(",")],
                        default=sorted({1, len(os.sched_getaffinity(0))}))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="*")
    options = parser.parse_args()
    found = find_models(options.models, options.only)
    if not found:
        sys.exit("bench_calibrate.py: no model is here")
    table = Table(held_by(options.tools.resolve()))
    for name, path in found:
        compare(table, options.tools.resolve(), name, path, options)
    many(table, options.tools.resolve(), found[-1][1], options)
    return table.missed != 0


if __name__ == "__main__":
    sys.exit(main())
