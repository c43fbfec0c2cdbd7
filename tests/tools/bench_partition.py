#!/usr/bin/env python3
"""bench_partition.py BIN SCRATCH MODEL...: is a session with the cost model on ever slower than the processor alone?

Each model runs with --provider cpu and with --provider opencl,cpu by turns, and the least run of each side is taken; so
do nets that are hard to divide (make_divided.py --fast). Exit status 1 where a model takes more than 1.05 times the
processor's time in the median of the rounds' ratios, too, and three times in a row (other work of the machine slows one
side alone for seconds). COST=off judges the division that moves all it can: with a
device that is slower than the processor (PoCL) it must say no, which shows that this can.
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys

BIN, SCRATCH = map(pathlib.Path, sys.argv[1:3])
HERE = pathlib.Path(__file__).resolve().parent
ROUNDS, SECONDS, MOST = int(os.environ.get("ROUNDS", "5")), os.environ.get("SECONDS_EACH", "0.3"), 1.05
DEVICE = "opencl:cost=off,cpu" if os.environ.get("COST") == "off" else "opencl,cpu"


def least(path, provider):
    done = subprocess.run([BIN / "ort-run", path, "--random", "1", "--provider", provider, "--seconds", SECONDS, "--json"],
                          capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return json.loads(done.stdout)["latency_ms"]["min"]


def placed(path):
    done = subprocess.run([BIN / "ort-inspect", path, "--partition", "--json", "--provider", DEVICE], capture_output=True,
                          text=True, check=True)
    return "{} of {}".format(*(lambda n: (n["opencl"], sum(n.values())))(
        {p["name"]: p["nodes"] for p in json.loads(done.stdout)["providers"]}))


def rounds(path):
    """Milliseconds of the processor and of the division, by round."""
    pairs = []
    for i in range(ROUNDS):
        both = {p: least(path, p) for p in (("cpu", DEVICE) if i % 2 else (DEVICE, "cpu"))}
        pairs.append((both["cpu"], both[DEVICE]))
    return pairs


def main():
    subprocess.run([sys.executable, HERE / "make_divided.py", SCRATCH, "--fast"], check=True)
    bad = judged = 0
    print("| model | on the device | cpu ms | divided ms | over cpu | |\n| --- | --: | --: | --: | --: | --- |")
    for path in [*sorted(SCRATCH.glob("*.onnx")), *map(pathlib.Path, sys.argv[3:])]:
        name = path.parent.name if path.name == "model.onnx" else path.stem
        try:
            least(path, "cpu")
        except RuntimeError as why:  # inputs that can't be made up
            print(f"| {name} | | | | | not run: {why} |")
            continue
        judged += 1
        try:
            for _ in range(3):
                pairs = rounds(path)
                cpu, divided = (min(side) for side in zip(*pairs))
                ratio = statistics.median(d / c for c, d in pairs)
                slower = divided / cpu > MOST and ratio > MOST
                if not slower:
                    break
        except RuntimeError as why:  # where the processor alone can
            print(f"| {name} | | | | | failed: {why} |")
            bad += 1
            continue
        bad += slower
        print(f"| {name} | {placed(path)} | {cpu:.3f} | {divided:.3f} | {divided / cpu:.3f} ({ratio:.3f}) | "
              f"{'slower' if slower else ''} |", flush=True)
    print(f"{judged} judged, {bad} failed or slower than the processor alone by more than {MOST - 1:.0%}")
    return bad != 0 or not judged


if __name__ == "__main__":
    sys.exit(main())
