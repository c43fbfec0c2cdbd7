#!/usr/bin/env python3
"""bench_partition.py BIN PAIRS SCRATCH MODEL...: is a session with the cost model on ever slower than the processor alone?

PAIRS (tests/providers/pairs.c) holds a session with --provider cpu and one with opencl,cpu in one process and runs them by
turns, windows of WINDOW ms each, on the model's own test_data_set_0 where it has one, else on values that are made up; so
it does with nets that are hard to divide (make_divided.py --fast). Each pair of windows gives a ratio. A process says as many
as SECONDS_EACH hold, six at least; sides change places from process to process, since where memory lies favours one of them
for a process's life. Processes go on, three at least, until the interval (95 %) of the ratios' median lies below 1.05 or
above, at most ROUNDS of them. Exit status 1 where it lies above, where it isn't decided, and where a model doesn't run on
either side: those are named at the end. COST=off judges the division that moves all it can: with a device that is slower
than the processor (PoCL) it must say no, which shows that this can. Equal sides: SIDES=cpu compares the processor with itself.
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys

import intervals

BIN, PAIRS, SCRATCH = map(pathlib.Path, sys.argv[1:4])
HERE = pathlib.Path(__file__).resolve().parent
ROUNDS, SECONDS, MOST = int(os.environ.get("ROUNDS", "40")), os.environ.get("SECONDS_EACH", "0.4"), 1.05
WINDOW, LEAST = os.environ.get("WINDOW", "4"), 3
DEVICE = os.environ.get("SIDES") or ("opencl:cost=off,cpu" if os.environ.get("COST") == "off" else "opencl,cpu")


class Alone(RuntimeError):
    """The first of the two lists of providers doesn't run the model."""


def pairs(path, turned):
    """Milliseconds of a run: processor alone and divided, for each pair of windows of one process."""
    sides = (DEVICE, "cpu") if turned else ("cpu", DEVICE)
    done = subprocess.run([PAIRS, path, *sides, WINDOW, SECONDS], capture_output=True, text=True)
    if done.returncode:
        kind = Alone if done.returncode == 2 and not turned else RuntimeError
        raise kind((done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1])
    times = [tuple(map(float, line.split())) for line in done.stdout.splitlines()]
    return [(b, a) for a, b in times] if turned else times


def placed(path):
    done = subprocess.run([BIN / "ort-inspect", path, "--partition", "--json", "--provider", DEVICE], capture_output=True,
                          text=True, check=True)
    return "{} of {}".format(*(lambda n: (n.get("opencl", 0), sum(n.values())))(
        {p["name"]: p["nodes"] for p in json.loads(done.stdout)["providers"]}))


def judge(path):
    """The median milliseconds of both sides, the median ratio, its interval, how many pairs."""
    seen = []
    for count in range(1, max(ROUNDS, LEAST) + 1):
        seen += pairs(path, count % 2 == 0)
        ratios = [divided / cpu for cpu, divided in seen]
        range_ = intervals.interval(ratios)
        if count >= LEAST and (range_[1] <= MOST or range_[0] > MOST):
            break
    cpu, divided = (statistics.median(side) for side in zip(*seen))
    return cpu, divided, statistics.median(ratios), range_, len(seen)


def main():
    subprocess.run([sys.executable, HERE / "make_divided.py", SCRATCH, "--fast"], check=True)
    judged, failed, left = 0, [], []
    print("| model | on the device | cpu ms | divided ms | over cpu | pairs | |\n| --- | --: | --: | --: | --: | --: | --- |")
    for path in [*sorted(SCRATCH.glob("*.onnx")), *map(pathlib.Path, sys.argv[4:])]:
        name = path.parent.name if path.name == "model.onnx" else path.stem
        try:
            cpu, divided, ratio, (low, high), count = judge(path)
        except Alone as why:
            print(f"| {name} | | | | | | the processor alone doesn't run it: {why} |")
            left.append(name)
            continue
        except RuntimeError as why:
            print(f"| {name} | | | | | | failed: {why} |")
            judged += 1
            failed.append(name)
            continue
        judged += 1
        verdict = "" if high <= MOST else "slower" if low > MOST else "not decided"
        failed += [name] if verdict else []
        print(f"| {name} | {placed(path)} | {cpu:.3f} | {divided:.3f} | {ratio:.3f} ({low:.3f} to {high:.3f}) | {count} | "
              f"{verdict} |", flush=True)
    print(f"{judged} judged; {len(failed)} failed or not shown to be within {MOST - 1:.0%} of the processor alone: "
          f"{', '.join(failed) or 'none'}; {len(left)} not run: {', '.join(left) or 'none'}")
    return bool(failed or left or not judged)


if __name__ == "__main__":
    sys.exit(main())
