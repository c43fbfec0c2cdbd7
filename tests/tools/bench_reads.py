#!/usr/bin/env python3
"""Products of one row beside a loop that only reads as many bytes, on one core and by turns.

usage: bench_reads.py READ_SHARE SCRATCH [--isa NAME] [--rounds N] [--only PATTERN]

What makes the next word of a language model reads every weight once, and is bound by that. Each line is a model of one
product whose weights are larger than the last-level cache: of 4, 8 and 2 bits in blocks (MatMulNBits), with and without
zero points, scales that 16 bits hold and others, rows in floats (level 0) and in codes of 8 bits (level 4); of float and
float16. Bytes are those that the product has to read: codes, scales, zero points. READ_SHARE (tests/bench/reads) runs
the model and the loop by turns. The goal is 95 % of the loop. Exit status 0 whatever was reached: a benchmark is no test.
"""
import argparse
import fnmatch
import os
import pathlib
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper

GOAL, DEPTH, BLOCK_NUMBERS = 0.95, 4096, 1 << 22
LEAST_BYTES = 256 << 20
KINDS = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.float16): TensorProto.FLOAT16,
         np.dtype(np.uint8): TensorProto.UINT8}

# bits, block, zero points, scales of 16 bits, accuracy_level
BLOCKS = [(4, 32, False, True, 0), (4, 32, False, True, 4), (4, 32, False, False, 0), (4, 32, True, True, 0),
          (4, 32, True, True, 4), (4, 16, False, True, 0), (4, 64, False, True, 0), (4, 128, True, True, 0),
          (4, 128, False, True, 4), (8, 32, False, True, 0), (8, 32, False, True, 4), (8, 128, True, True, 0),
          (2, 32, False, True, 0), (2, 32, False, True, 4), (2, 64, True, True, 0), (2, 128, False, True, 4)]


def last_cache():
    sizes = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    path = pathlib.Path("/sys/devices/system/cpu/cpu0/cache/index3/size")
    text = path.read_text().strip() if path.exists() else ""
    return int(text[:-1]) * sizes[text[-1]] if text and text[-1] in sizes else 0


def memory_available():
    lines = pathlib.Path("/proc/meminfo").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("MemAvailable"))) << 10


def external(name, dtype, dims, path):
    """A weight that lies in a file of numbers, from its beginning."""
    t = TensorProto(name=name, data_type=KINDS[np.dtype(dtype)], dims=dims, data_location=TensorProto.EXTERNAL)
    for key, value in ("location", path.name), ("length", int(np.prod(dims)) * np.dtype(dtype).itemsize):
        t.external_data.add(key=key, value=str(value))
    return t


def fill(path, block, size):
    """Numbers of one block again and again: which they are doesn't matter to what is measured."""
    if path.exists() and path.stat().st_size == size:
        return path
    with open(path, "wb") as f:
        for at in range(0, size, block.nbytes):
            f.write(block.tobytes()[:size - at])
    return path


def save(path, nodes, weights, n):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, DEPTH])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, n])
    graph = helper.make_graph(nodes, "product", [x], [y], weights)
    model = helper.make_model(graph, ir_version=8, opset_imports=[
        helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)])
    onnx.save(model, path)


class Maker:
    """Models of one product that reads at least so many bytes."""

    def __init__(self, folder, size):
        self.folder, self.size = folder, size
        numbers = np.random.default_rng(1).standard_normal(BLOCK_NUMBERS, np.float32) * np.float32(0.02)
        room = size + (1 << 20)
        self.floats = fill(folder / "reads_f32.bin", numbers, room)
        self.halves = fill(folder / "reads_f16.bin", numbers.astype(np.float16), room)
        self.path = folder / "reads.onnx"

    def columns(self, bytes_of_column):
        return int(-(-self.size // bytes_of_column // 64) * 64)

    def float_product(self, half):
        dtype = np.float16 if half else np.float32
        column = DEPTH * np.dtype(dtype).itemsize
        n = self.columns(column) - 64
        weight = external("w", dtype, [DEPTH, n], self.halves if half else self.floats)
        nodes = [helper.make_node("MatMul", ["x", "wide" if half else "w"], ["y"])]
        if half:
            nodes.insert(0, helper.make_node("Cast", ["w"], ["wide"], to=TensorProto.FLOAT))
        save(self.path, nodes, [weight], n)
        return n, n * column

    def block_product(self, bits, block, zeros, half, level):
        blocks = DEPTH // block
        column = DEPTH * bits // 8 + blocks * (2 if half else 4) + (blocks if zeros else 0)
        n = self.columns(column) - 64
        draw = np.random.default_rng(2)
        scales = (draw.random((n, blocks), np.float32) + 0.5) * np.float32(0.01)
        scales = scales.astype(np.float16).astype(np.float32) if half else scales
        weights = [external("q", np.uint8, [n, blocks, block * bits // 8], self.floats),
                   onnx.numpy_helper.from_array(scales, "s")]
        if zeros:
            packed = draw.integers(0, 256, (n, -(-blocks * bits // 8)), np.uint8)
            weights.append(onnx.numpy_helper.from_array(packed, "z"))
        nodes = [helper.make_node("MatMulNBits", ["x", "q", "s"] + (["z"] if zeros else []), ["y"],
                                  domain="com.microsoft", K=DEPTH, N=n, bits=bits, block_size=block,
                                  accuracy_level=level)]
        save(self.path, nodes, weights, n)
        return n, n * column


def cases(maker):
    """(what a line says, a function that writes its model)."""
    for bits, block, zeros, half, level in BLOCKS:
        yield (f"{bits} bits, blocks of {block}{', zero points' if zeros else ''}"
               f"{'' if half else ', scales of 32 bits'}, level {level}",
               lambda c=(bits, block, zeros, half, level): maker.block_product(*c))
    yield "float", lambda: maker.float_product(False)
    yield "float16", lambda: maker.float_product(True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("read_share", type=pathlib.Path)
    parser.add_argument("scratch", type=pathlib.Path)
    parser.add_argument("--isa", default="")
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--only", default="*", help="lines that this pattern takes")
    o = parser.parse_args()
    size = max(LEAST_BYTES, last_cache() * 5 // 4)
    free = memory_available()
    print(f"One row by {DEPTH} deep weights of {size / 1e6:.0f} MB, the last-level cache has {last_cache() / 1e6:.0f}; "
          f"{o.rounds} rounds, load {os.getloadavg()[0]:.1f}\n")
    if free < 3 * size:
        sys.exit(f"bench_reads: {free >> 20} MB are free; a model, its packed weights and a loop's memory take "
                 f"{3 * size >> 20}")
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    print("| weights | columns | tier | GB/s | a loop that reads, GB/s | of it (quartiles) | 95 % |\n"
          "| --- | --: | --- | --: | --: | --: | --- |")
    maker, missed = Maker(o.scratch, size), 0
    for what, make in cases(maker):
        if not fnmatch.fnmatch(what, o.only):
            continue
        n, count = make()
        done = subprocess.run([o.read_share, maker.path, str(count), o.isa, str(o.rounds)], capture_output=True,
                              text=True)
        if done.returncode:
            sys.exit(f"{what}: {done.stderr.strip()}")
        run, read, share, low, high, isa = done.stdout.split()
        missed += float(share) < GOAL
        print(f"| {what} | {n} | {isa} | {float(run):.2f} | {float(read):.2f} | {float(share):.1%} ({float(low):.1%} to "
              f"{float(high):.1%}) | {'yes' if float(share) >= GOAL else 'no'} |", flush=True)
    for path in maker.floats, maker.halves, maker.path:
        path.unlink()
    print(f"\nBelow {GOAL:.0%}: {missed}")


if __name__ == "__main__":
    main()
