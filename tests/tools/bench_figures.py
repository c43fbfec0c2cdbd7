#!/usr/bin/env python3
"""bench_figures.py BIN_DIR SCRATCH: the figures that need no peer, one row each.

Summary of a 10 GB model, optimization of one of 4.5 GB (both sparse files), load and optimization of
graphs of several kinds of 50,000 and 100,000 nodes with the ratio of their times (at most 2.3), time
per node of a chain of tiny operators, time of a run of one node, size of a tool. Models are written
as protobuf bytes by fixtures.py's helpers; the 10 GB are a sparse file. Times are the best of five
processes, of sizes that are compared of nine; memory is the peak resident size, at least that of
this interpreter (some 18 MB), which a process begins with; of the 10 GB the tool's alone.
"""
import ctypes
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

from fixtures import FLOAT, field, node, value_info, varint
from graph_kinds import KINDS

BIN, SCRATCH = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])


def model(graph):
    return field(1, 8) + field(8, field(1, "") + field(2, 17)) + field(7, graph)


def chain(path, count, dims):
    """x + x, then + x, count times: no two nodes are the same, none is constant."""
    nodes = b"".join(field(1, node("Add", [f"v{i}" if i else "x", "x"],
                                   [f"v{i + 1}" if i + 1 < count else "out"])) for i in range(count))
    path.write_bytes(model(nodes + field(2, "chain") + field(11, value_info("x", dims)) +
                           field(12, value_info("out", dims))))


def huge(path, size):
    head = field(1, size // 4) + field(2, 1) + field(8, "w") + varint(9 << 3 | 2) + varint(size)
    header = varint(5 << 3 | 2) + varint(len(head) + size)
    graph = (field(1, node("Add", ["x", "w"], ["out"])) + field(2, "big") +
             field(11, value_info("x", [1])) + field(12, value_info("out", [size // 4])))
    with open(path, "wb") as f:
        f.write(field(1, 8) + field(8, field(1, "") + field(2, 17)) + varint(7 << 3 | 2) +
                varint(len(graph) + len(header) + len(head) + size))
        f.write(graph + header + head)
        f.truncate(f.tell() + size)


def external(name, count, offset):
    """An initializer of floats in big.bin."""
    entries = {"location": "big.bin", "offset": str(offset), "length": str(4 * count)}
    return (field(1, count) + field(2, FLOAT) + field(8, name) +
            b"".join(field(13, field(1, k) + field(2, v)) for k, v in entries.items()) + field(14, 1))


def big(path, sizes):
    """Products with weights of so many bytes each, in a sparse file beside the model."""
    nodes, weights, at, offset = [], [], "x", 0
    for i, size in enumerate(sizes):
        nodes.append(node("Mul", [at, f"w{i}"], [f"m{i}"]))
        nodes.append(node("ReduceSum", [f"m{i}"], [f"s{i}"]))
        weights.append(external(f"w{i}", size // 4, offset))
        at, offset = f"s{i}", offset + size
    graph = b"".join(field(1, n) for n in nodes) + field(2, "big")
    graph += b"".join(field(5, w) for w in weights)
    graph += field(11, value_info("x", [1])) + field(12, value_info(at, [1]))
    path.write_bytes(model(graph))
    with open(path.parent / "big.bin", "wb") as f:
        f.truncate(offset)


def optimize_big():
    path, out = SCRATCH / "big.onnx", SCRATCH / "big_out.onnx"
    big(path, [1_000_000_000, 1_500_000_000, 2_000_000_000])
    seconds, peak, _ = run(BIN / "ort-optimize", path, "--no-verify", "-q", "-o", out, times=1)
    size = out.with_name(out.name + ".data").stat().st_size
    row("optimize a model of 4.5 GB", f"{seconds:.1f} s, {peak:.0f} MB, writes {size / 1e9:.1f} GB")
    for left in SCRATCH.glob("big*"):
        left.unlink()


def in_turn(paths, command, arguments):
    """Of each path the best seconds, its peak MB, and its time over that of the path before, the
    median of the rounds: the sizes take turns, so that what else the machine does meets all."""
    rounds = [[run(BIN / command, path, *arguments, times=1)[:2] for path in paths]
              for _ in range(9)]
    for i in range(len(paths)):
        times = [r[i][0] for r in rounds]
        ratio = statistics.median(r[i][0] / r[i - 1][0] for r in rounds) if i else None
        yield min(times), max(r[i][1] for r in rounds), ratio


def load_chains():
    sizes = (10_000, 20_000, 40_000, 80_000)
    paths = [SCRATCH / f"chain{count}.onnx" for count in sizes]
    for count, path in zip(sizes, paths):
        chain(path, count, [1])
    for count, (seconds, peak, ratio) in zip(sizes, in_turn(paths, "ort-inspect", ["--check"])):
        row(f"load and check {count:,} nodes", f"{seconds:.3f} s, {peak:.0f} MB" +
            (f", {ratio:.2f} times half of them" if ratio else ""))
    for path in paths:
        path.unlink()


def optimize_kinds():
    sizes, out = (50_000, 100_000), SCRATCH / "o.onnx"
    paths = [SCRATCH / f"kind{count}.onnx" for count in sizes]
    for kind, make in KINDS.items():
        for count, path in zip(sizes, paths):
            path.write_bytes(make(count))
        seconds, peak, ratio = list(in_turn(paths, "ort-optimize",
                                            ["--no-verify", "-q", "-o", out]))[1]
        row(f"optimize 100,000 nodes, {kind}",
            f"{seconds:.2f} s, {peak:.0f} MB, {ratio:.2f} times 50,000")
    for path in paths:
        path.unlink()


def run(*command, times=5):
    """Best seconds and peak MB of so many processes; standard output of the last."""
    best, peak, text = None, 0, ""
    for _ in range(times):
        begin = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        text, errors = process.stdout.read(), process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begin
        if status:
            sys.exit(f"{' '.join(map(str, command))}: status {status}\n{errors}")
        best = seconds if best is None else min(best, seconds)
        peak = max(peak, usage.ru_maxrss / 1000)
    return best, peak, text


def resident(*command):
    """Peak MB of the command alone: a shell starts it, so that it begins with the shell's memory,
    and leaves it to us (PR_SET_CHILD_SUBREAPER)."""
    ctypes.CDLL(None).prctl(36, 1)
    shell = subprocess.Popen(["sh", "-c", '"$@" > /dev/null &', "sh", *command])
    assert shell.wait() == 0
    _, status, usage = os.wait4(-1, 0)
    assert status == 0
    return usage.ru_maxrss / 1000


def row(what, figure):
    print(f"| {what} | {figure} |", flush=True)


def median_us(path, level):
    report = run(BIN / "ort-run", path, "--random", "1", "--repeat", "20000", "--warmup", "1000",
                 "--threads", "1", "--level", str(level), "--json")[2]
    return json.loads(report)["latency_ms"]["p50"] * 1e3


def main():
    SCRATCH.mkdir(parents=True, exist_ok=True)
    print("| what | figure |\n| --- | --- |")
    path = SCRATCH / "huge.onnx"
    huge(path, 10_000_000_000)
    seconds = run(BIN / "ort-inspect", path)[0]
    row("summary of a 10 GB model", f"{seconds:.3f} s, {resident(BIN / 'ort-inspect', path):.1f} MB")
    path.unlink()
    load_chains()
    optimize_kinds()
    optimize_big()
    chain(path, 500, [1])
    long = median_us(path, 0)
    chain(path, 1, [1])
    short = median_us(path, 0)
    stripped = SCRATCH / "stripped"
    subprocess.run(["strip", "-o", stripped, BIN / "ort-run"], check=True)
    row("ort-run, stripped", f"{stripped.stat().st_size / 1e6:.1f} MB")
    stripped.unlink()
    row("time per node in a chain of 500", f"{(long - short) / 499 * 1e3:.0f} ns")
    row("a run of one node, its clock included", f"{short * 1e3:.0f} ns")
    path.unlink()


main()
