#!/usr/bin/env python3
"""bench_pack.py BENCH BIN SCRATCH LIBONNXRUNTIME [--only GLOB] [--launches N] DIR...

Session ready with and without the pack file beside onnxruntime's session on its own optimized file (level
extended), one thread, through C: a table of the models of DIRs, and the gates of minilm_l6_v2 and resnet50.

Each side runs in processes of tests/bench/bench.c's worker, alternated; figures are medians over the
launches. First run over steady is the median of each launch's own ratio. The memory gate: peak memory less
the weights touched (pages of the pack and of the model that are resident in the end), the arena planned
for the inputs' shapes and the tensors of the caller (inputs and outputs) must be at most 8 MB.
"""
import argparse
import fnmatch
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

GATED = ("minilm_l6_v2", "resnet50")
MEMORY_SLACK_MB = 8


def touched(pid, folder):
    """MB of the model's and the pack's mappings that are resident."""
    kilobytes, counts = 0, False
    for line in open(f"/proc/{pid}/smaps"):
        if "-" in line.split(" ", 1)[0]:
            counts = line.rstrip().endswith(("model.onnx", "model.onnx.pack")) and str(folder) in line
        elif counts and line.startswith("Rss:"):
            kilobytes += int(line.split()[1])
    return kilobytes * 1024 / 1e6


def array_bytes(path):
    import numpy
    return sum(array.nbytes for array in numpy.load(path).values())


def launch(bench, side, library, folder):
    """Milliseconds to a session, of the first run, of the steady one; peak MB; MB of weights; MB of
    the outputs."""
    start = time.monotonic() * 1e3
    process = subprocess.Popen([bench, "--worker", side, library, folder, "1", f"{start:.6f}"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def answer(command=None):
        if command:
            process.stdin.write(command + "\n")
            process.stdin.flush()
        line = process.stdout.readline().split(None, 1)
        if not line or line[0] != "ok":
            raise RuntimeError(line[1].strip() if len(line) > 1 else "the process died")
        return float(line[1])

    try:
        figures = [answer(), answer("first"), answer("round"), answer("peak"), touched(process.pid, folder)]
        if side == "ours":
            answer(f"save {folder / 'outputs.npz'}")
            figures.append(array_bytes(folder / "outputs.npz") / 1e6)
        return figures
    finally:
        process.stdin.close()
        process.wait()


def optimized_by_peer(source, target):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(target)
    onnxruntime.InferenceSession(str(source), options)


def prepare(tools, scratch, source):
    """Three folders with the same inputs: our file with its pack, without, and the peer's file."""
    folders = [scratch / source.name / kind for kind in ("pack", "plain", "peer")]
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for item in ("inputs.npz", "test_data_set_0"):
            if (source / item).exists():
                os.symlink((source / item).resolve(), folder / item)
    ours = folders[0] / "model.onnx"
    subprocess.run([tools / "ort-optimize", source / "model.onnx", "--no-verify", "-q", "--pack",
                    "-o", ours], check=True)
    os.link(ours, folders[1] / "model.onnx")
    optimized_by_peer(source / "model.onnx", folders[2] / "model.onnx")
    return folders


def input_megabytes(folder):
    if (folder / "inputs.npz").exists():
        return array_bytes(folder / "inputs.npz") / 1e6
    return sum(path.stat().st_size for path in (folder / "test_data_set_0").glob("input_*.pb")) / 1e6


def input_shapes(folder):
    """Name and dimensions of the inputs that are tensors."""
    if (folder / "inputs.npz").exists():
        import numpy
        return [(name, array.shape) for name, array in numpy.load(folder / "inputs.npz").items()]
    import onnx
    inputs = onnx.load(folder / "model.onnx", load_external_data=False).graph.input
    shapes = []
    for i, value in enumerate(inputs):
        path = folder / "test_data_set_0" / f"input_{i}.pb"
        if value.type.HasField("tensor_type") and path.exists():
            shapes.append((value.name, tuple(onnx.load_tensor(path).dims)))
    return shapes


def planned_arena(tools, folder):
    """MB, for the shapes of the inputs."""
    shapes = []
    for name, shape in input_shapes(folder):
        shapes += ["--shape", f"{name}:{list(shape)}".replace(" ", "")]
    text = subprocess.run([tools / "ort-inspect", folder / "model.onnx", "--memory", "--json", *shapes],
                          check=True, capture_output=True, text=True).stdout
    return json.loads(text)["arena_bytes"] / 1e6


def measure(options, folders):
    sides = (("ours", folders[0]), ("ours", folders[1]), ("onnxruntime", folders[2]))
    figures = [[], [], []]
    for _ in range(options.launches):
        for which, (side, folder) in enumerate(sides):
            figures[which].append(launch(options.bench, side, options.library, folder))
    return figures


def median(figures, which):
    return statistics.median(f[which] for f in figures)


def row(options, source):
    folders = prepare(options.bin, options.scratch, source)
    pack, plain, peer = measure(options, folders)
    arena = planned_arena(options.bin, folders[1])
    weights = median(pack, 4)
    result = {
        "ready_pack": median(pack, 0), "ready_plain": median(plain, 0), "ready_peer": median(peer, 0),
        "first": statistics.median(f[1] / f[2] for f in pack),
        "peak": median(pack, 3), "weights": weights, "arena": arena,
        "caller": input_megabytes(folders[0]) + median(pack, 5),
    }
    result["over"] = result["peak"] - weights - arena - result["caller"]
    print(f"{source.name:34} {result['ready_pack']:8.2f} {result['ready_plain']:8.2f} "
          f"{result['ready_peer']:8.2f} {result['ready_pack'] / result['ready_peer']:7.3f} "
          f"{result['ready_plain'] / result['ready_peer']:7.3f} {result['first']:7.2f} "
          f"{result['peak']:8.1f} {weights:8.1f} {arena:7.1f} {result['caller']:6.1f} {result['over']:7.1f}", flush=True)
    shutil.rmtree(options.scratch / source.name)
    return result


def gates(results):
    missed = 0
    for name in GATED:
        if name not in results:
            continue
        r = results[name]
        for what, figure, limit in (
                ("session ready with the pack / onnxruntime", r["ready_pack"] / r["ready_peer"], 1 / 10),
                ("session ready without / onnxruntime", r["ready_plain"] / r["ready_peer"], 1 / 3),
                ("first run / steady median", r["first"], 1.15),
                ("MB over weights, arena and caller's tensors", r["over"], MEMORY_SLACK_MB)):
            met = figure <= limit
            missed += not met
            print(f"{name}: {what}: {figure:.3f}, gate {limit:.3f}: {'met' if met else 'MISSED'}")
    return missed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bench")
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("scratch", type=pathlib.Path)
    parser.add_argument("library")
    parser.add_argument("dirs", nargs="+", type=pathlib.Path)
    parser.add_argument("--only", default="*")
    parser.add_argument("--launches", type=int, default=7)
    options = parser.parse_args()
    print("session ready ms: with the pack, without, onnxruntime; ratios; first run / steady; MB: peak, "
          "weights touched, arena, the caller's tensors, peak over the three")
    results = {}
    for folder in (f for d in options.dirs for f in sorted(d.iterdir())):
        if not (folder / "model.onnx").exists() or not fnmatch.fnmatch(folder.name, options.only):
            continue
        try:
            results[folder.name] = row(options, folder)
        except (RuntimeError, subprocess.CalledProcessError) as error:
            print(f"{folder.name:34} not compared: {error}", flush=True)
        except Exception as error:  # the peer's exceptions have no common base
            print(f"{folder.name:34} the peer refuses: {str(error).splitlines()[0][:100]}", flush=True)
    return 1 if gates(results) else 0


if __name__ == "__main__":
    sys.exit(main())
