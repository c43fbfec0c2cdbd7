#!/usr/bin/env python3
"""bench_figures.py BIN_DIR SCRATCH: the figures that need no peer, one row each.

Summary of a 10 GB model, load and optimization of graphs of 50,000 and 100,000 nodes, time per node of a
chain of tiny operators, time of a run of one node. Models are written as protobuf bytes by fixtures.py's
helpers; the 10 GB are a sparse file. Times are the best of five processes; memory is the peak resident size, of which some 15 MB
are this interpreter's before the tool starts.
"""
import json
import os
import pathlib
import subprocess
import sys
import time

from fixtures import field, node, value_info, varint

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


def run(*command):
    """Best seconds and peak MB of five processes; standard output of the last."""
    best, peak, text = None, 0, ""
    for _ in range(5):
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
    seconds, peak, _ = run(BIN / "ort-inspect", path)
    path.unlink()
    row("summary of a 10 GB model", f"{seconds:.3f} s, {peak:.1f} MB")
    for count in (50_000, 100_000):
        path = SCRATCH / "chain.onnx"
        chain(path, count, [1])
        seconds, peak, _ = run(BIN / "ort-inspect", path, "--check")
        row(f"load and check {count:,} nodes", f"{seconds:.2f} s, {peak:.0f} MB")
        seconds, peak, _ = run(BIN / "ort-optimize", path, "--no-verify", "-q", "-o", SCRATCH / "o.onnx")
        row(f"load, optimize and save {count:,} nodes", f"{seconds:.2f} s, {peak:.0f} MB")
    chain(path, 500, [1])
    long = median_us(path, 0)
    chain(path, 1, [1])
    short = median_us(path, 0)
    row("time per node in a chain of 500", f"{(long - short) / 499 * 1e3:.0f} ns")
    row("a run of one node, its clock included", f"{short * 1e3:.0f} ns")
    path.unlink()


main()
