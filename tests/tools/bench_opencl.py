#!/usr/bin/env python3
"""bench_opencl.py BIN SCRATCH MODEL...: what products and convolutions reach on OpenCL, and what its provider costs.

Products of N x N and 3x3 convolutions, each as a chain of eight so that copies don't count: the least of the runs,
GFLOP/s, and percent of the peak that the same cores were measured to have beside it (goals 35 and 30 % on PoCL).
CLBlast's untuned default stands beside the products where its library is installed (libclblast-dev).
Then models, all on the device: the least run, the sum of their kernels by the device's events, what is
between the two (goal: at most 5 % where kernels take 20 ms or more), and microseconds for each kernel. Each is measured in
rounds until the interval (95 %) of their median lies on one side of the goal, at most ROUNDS of them; a goal is missed
where it isn't met by the whole interval.
A device that is this machine's processor says nothing about a GPU. Exit status 1 where a goal is missed.
"""
import json
import os
import pathlib
import subprocess
import sys

import intervals
import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

BIN, SCRATCH = map(pathlib.Path, sys.argv[1:3])
HERE = pathlib.Path(__file__).resolve().parent.parent
SECONDS, ROUNDS = os.environ.get("SECONDS_EACH", "0.5"), int(os.environ.get("ROUNDS", "20"))
CHAIN = 8
PRODUCTS, CONVOLUTIONS, OVER, FROM_MS = 35, 30, 5, 20  # goals, in percent; of which kernels the last but one is asked
missed = []


def judge(what, met):
    if not met:
        missed.append(what)
    return "" if met else " missed"


def profile(path):
    done = subprocess.run([BIN / "ort-profile", "--provider", "opencl:cost=off,cpu", path, "--json", "--seconds", SECONDS],
                          capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{path}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def run(path, **environment):
    """The least run's milliseconds; a profile would ask for the device's events itself."""
    done = subprocess.run([BIN / "ort-run", "--provider", "opencl:cost=off,cpu", path, "--random", "1", "--json",
                           "--seconds", SECONDS], capture_output=True, text=True, env=dict(os.environ, **environment))
    if done.returncode:
        sys.exit(f"{path}: {done.stderr.strip()}")
    return json.loads(done.stdout)["latency_ms"]["min"]


def chain(op, shape, weight, **attributes):
    """The path of a model of CHAIN nodes, whose results have the shape of their input."""
    random = np.random.default_rng(1)
    weights = [numpy_helper.from_array((random.standard_normal(weight) / np.sqrt(np.prod(weight[1:]))).astype(np.float32),
                                       f"w{i}") for i in range(CHAIN)]
    nodes = [helper.make_node(op, [f"x{i}", f"w{i}"], [f"x{i + 1}"], **attributes) for i in range(CHAIN)]
    graph = helper.make_graph(nodes, "chain", [helper.make_tensor_value_info("x0", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info(f"x{CHAIN}", TensorProto.FLOAT, shape)], weights)
    path = SCRATCH / "chain.onnx"
    save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


def rate(path, flops, goal):
    """The least milliseconds, GFLOP/s, and the share of the peak: its median, interval, rounds."""
    times = []

    def missing():
        report = profile(path)
        times.append(report["latency_ms"]["min"] / CHAIN)
        return -100 * flops / times[-1] / 1e6 / report["machine"]["peak_gflops"]

    median, (low, high), count = intervals.decide(missing, -goal, ROUNDS)
    return min(times), flops / min(times) / 1e6, f"{-median:.0f} % ({-high:.0f} to {-low:.0f}, {count} rounds)", -high >= goal


def clblast(sizes):
    program = SCRATCH / "clblast"
    built = subprocess.run(["cc", "-O2", HERE / "bench/opencl/clblast.c", "-o", program, "-lclblast", "-lOpenCL"],
                           capture_output=True, text=True)
    if built.returncode:
        print("CLBlast isn't here (libclblast-dev): its column is empty\n")
        return {}
    done = subprocess.run([program, *map(str, sizes)], capture_output=True, text=True)
    return {int(n): float(ms) for n, ms in (line.split() for line in done.stdout.splitlines())}


def main():
    SCRATCH.mkdir(parents=True, exist_ok=True)
    sizes = (512, 1024, 2048)
    theirs = clblast(sizes)
    print("| product | ms | GFLOP/s | of peak | CLBlast ms | its GFLOP/s |\n| --- | --: | --: | --: | --: | --: |")
    for n in sizes:
        ms, gflops, share, met = rate(chain("MatMul", [n, n], [n, n]), 2 * n ** 3, PRODUCTS)
        own = theirs.get(n, 0)
        print(f"| {n} x {n} x {n} | {ms:.2f} | {gflops:.1f} | {share}{judge(f'{n} x {n} x {n}', met)} | " +
              (f"{own:.2f} | {2 * n ** 3 / own / 1e6:.1f} |" if own > 0 else "| |"))
    print("\n| 3x3 convolution | ms | GFLOP/s | of peak |\n| --- | --: | --: | --: |")
    for channels, side in ((64, 56), (128, 28), (256, 14), (512, 7)):
        path = chain("Conv", [1, channels, side, side], [channels, channels, 3, 3], pads=[1, 1, 1, 1])
        ms, gflops, share, met = rate(path, 2 * 9 * channels ** 2 * side ** 2, CONVOLUTIONS)
        print(f"| {channels} channels, {side} x {side} | {ms:.3f} | {gflops:.1f} | {share}"
              f"{judge(f'{channels} channels', met)} |")
    library, times = SCRATCH / "kernel_times.so", SCRATCH / "kernel_times"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", HERE / "bench/opencl/kernel_times.c", "-o", library, "-l:libOpenCL.so.1"],
                   check=True)
    print("\n| model | run ms | kernels ms | over | kernels | us each |\n| --- | --: | --: | --: | --: | --: |")
    for path in sys.argv[3:]:
        seen = []

        def over():
            times.unlink(missing_ok=True)
            ms = run(path, ORT_OPENCL_LIB=str(library), KERNEL_TIMES=str(times))
            count, ns, _ = (float(n) for n in times.read_text().split())
            seen.append((ms, ns / 1e6, count))
            return 100 * (ms - ns / 1e6) / (ns / 1e6)

        percent, (low, high), rounds = intervals.decide(over, OVER, ROUNDS)
        (ms, kernels, count), name = min(seen), pathlib.Path(path).parent.name
        verdict = judge(f"{name}'s overhead", high <= OVER or kernels < FROM_MS)
        print(f"| {name} | {ms:.2f} | {kernels:.2f} | {percent:.1f} % ({low:.1f} to {high:.1f}, {rounds} rounds){verdict} | "
              f"{count:.0f} | {1e3 * ms / count:.1f} |", flush=True)
    print(f"\nmissed: {', '.join(missed) or 'nothing'}")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
