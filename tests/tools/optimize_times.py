"""The times of bench_optimize.py: what the process takes, in turns with onnxruntime's session creation, and
how long the written file runs in onnxruntime beside the original.
"""
import json
import math
import pathlib
import shutil
import subprocess
import tempfile
import time

import numpy as np
import onnxruntime

from onnx_runs import session

LIBRARY = next(pathlib.Path(onnxruntime.__file__).parent.glob("capi/libonnxruntime.so.*"))
ROUNDS, RUNS_MIN, ROUND_S = 15, 7, 0.03
# A model whose run takes long has fewer rounds, of fewer runs: that much time for all of them.
ROUNDS_FEW, RATIO_S = 7, 20
LAUNCHES_MIN, LAUNCHES_MAX, LAUNCHES_S = 3, 40, 3
# Of 15 paired rounds sorted by ratio, the 4th to the 12th hold the median with 96.5 % (binomial), of
# 7 the first and the last with 98 %.
CONFIDENCE = 0.95


def printed_ms(*command):
    return float(subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL).stdout)


def load_and_passes_ms(tool, source):
    text = subprocess.run([tool, source, "--no-verify", "--json"], check=True, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    report = json.loads(text)
    return report["load_ms"] + report["optimize_ms"]


def process_times(tool, bench, source, scratch):
    """The best of launches in turns: load and passes, the whole process, onnxruntime's creation
    (missing where onnxruntime refuses the model). The process writes to memory where there is a
    folder of it: how long a disk takes to have a file for good is its own affair, and anybody's who
    writes to it at the time."""
    best = {}
    memory = pathlib.Path("/dev/shm")
    folder = pathlib.Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else scratch))
    target = folder / "timed.onnx"
    begin = time.perf_counter()
    for turn in range(LAUNCHES_MAX):
        if turn >= LAUNCHES_MIN and time.perf_counter() - begin > LAUNCHES_S:
            break
        samples = {"passes_ms": load_and_passes_ms(tool, source),
                   "process_ms": printed_ms(bench, "--launch", tool, source, "-q",
                                            "--no-verify", "-o", target)}
        try:
            samples["creation_ms"] = printed_ms(bench, "--creation", LIBRARY, source)
        except subprocess.CalledProcessError:
            pass
        for key, ms in samples.items():
            best[key] = min(ms, best.get(key, math.inf))
    shutil.rmtree(folder)
    return best


def order_ranks(count):
    """Places (from 0) in the sorted sample between which the median lies with CONFIDENCE."""
    tail = below = 0
    while 2 * (tail + math.comb(count, below)) <= (1 - CONFIDENCE) * 2 ** count:
        tail += math.comb(count, below)
        below += 1
    return max(below - 1, 0), count - max(below, 1)


def round_ms(model, feeds, runs):
    """The median of so many runs."""
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        model.run(None, feeds)
        times.append(time.perf_counter() - begin)
    return float(np.median(times)) * 1e3


def run_ratio(original, written, feeds, rounds=ROUNDS):
    """Time of `written` / time of `original` in onnxruntime with all optimizations, one thread:
    (median, low, high) of the paired rounds. Sessions are made anew every third round: where their
    memory lies moves a small model by percents."""
    ratios, models, runs = [], [], RUNS_MIN
    while len(ratios) < rounds:
        turn = len(ratios)
        if turn % 3 == 0:
            order = (original, written) if turn % 2 else (written, original)
            made = {path: session(path, "all") for path in order}
            models = [made[original], made[written]]
            ms = max(min(round_ms(m, feeds, 3) for m in models), 1e-3)
            if 2 * rounds * RUNS_MIN * ms > RATIO_S * 1e3:
                rounds = min(rounds, ROUNDS_FEW)
            fewest = max(1, min(RUNS_MIN, RATIO_S * 1e3 / (2 * rounds * ms)))
            runs = int(min(2000, max(fewest, ROUND_S * 1e3 / ms)))
        sides = (0, 1) if turn % 2 else (1, 0)
        ms_of = {side: round_ms(models[side], feeds, runs) for side in sides}
        ratios.append(ms_of[1] / ms_of[0])
    ratios.sort()
    low, high = order_ranks(len(ratios))
    return float(np.median(ratios)), ratios[low], ratios[high]
