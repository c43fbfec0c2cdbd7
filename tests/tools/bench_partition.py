#!/usr/bin/env python3
"""bench_partition.py BIN SCRATCH MODEL...: is a session with the cost model on ever slower than the processor alone?

Each model runs with --provider cpu and with --provider opencl,cpu by turns, on its own test_data_set_0 where it has one,
else on values that are made up; so do nets that are hard to divide (make_divided.py --fast). A round's ratio is that of
the least runs of the two sides, and rounds go on until the interval (95 %) of the ratios' median lies below 1.05 or above,
for at most ROUNDS rounds: other work of the machine makes single rounds wrong, not their median. Exit status 1 where it
lies above, where it isn't decided, and where a model doesn't run on either side: those are named at the end. COST=off
judges the division that moves all it can: with a device that is slower than the processor (PoCL) it must say no, which
shows that this can. Equal sides: SIDES=cpu compares the processor with itself.
"""
import json
import os
import pathlib
import subprocess
import sys

import intervals

BIN, SCRATCH = map(pathlib.Path, sys.argv[1:3])
HERE = pathlib.Path(__file__).resolve().parent
ROUNDS, SECONDS, MOST = int(os.environ.get("ROUNDS", "40")), os.environ.get("SECONDS_EACH", "0.3"), 1.05
DEVICE = os.environ.get("SIDES") or ("opencl:cost=off,cpu" if os.environ.get("COST") == "off" else "opencl,cpu")


def least(path, provider):
    own = path.parent / "test_data_set_0"
    inputs = ["-i", own] if own.is_dir() else ["--random", "1"]
    done = subprocess.run([BIN / "ort-run", path, *inputs, "--provider", provider, "--seconds", SECONDS, "--json"],
                          capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return json.loads(done.stdout)["latency_ms"]["min"]


def placed(path):
    done = subprocess.run([BIN / "ort-inspect", path, "--partition", "--json", "--provider", DEVICE], capture_output=True,
                          text=True, check=True)
    return "{} of {}".format(*(lambda n: (n.get("opencl", 0), sum(n.values())))(
        {p["name"]: p["nodes"] for p in json.loads(done.stdout)["providers"]}))


def judge(path):
    """The least milliseconds of both sides, the median ratio, its interval."""
    cpu, divided = [], []

    def ratio():
        both = {}
        for provider in ("cpu", DEVICE) if len(cpu) % 2 else (DEVICE, "cpu"):
            both.setdefault(provider, []).append(least(path, provider))
        cpu.append(both["cpu"][0])
        divided.append(both[DEVICE][-1])
        return divided[-1] / cpu[-1]

    median, range_, count = intervals.decide(ratio, MOST, ROUNDS)
    return min(cpu), min(divided), median, range_, count


def main():
    subprocess.run([sys.executable, HERE / "make_divided.py", SCRATCH, "--fast"], check=True)
    judged, failed, left = 0, [], []
    print("| model | on the device | cpu ms | divided ms | over cpu | rounds | |\n| --- | --: | --: | --: | --: | --: | --- |")
    for path in [*sorted(SCRATCH.glob("*.onnx")), *map(pathlib.Path, sys.argv[3:])]:
        name = path.parent.name if path.name == "model.onnx" else path.stem
        try:
            least(path, "cpu")
        except RuntimeError as why:
            print(f"| {name} | | | | | | the processor alone doesn't run it: {why} |")
            left.append(name)
            continue
        judged += 1
        try:
            cpu, divided, ratio, (low, high), count = judge(path)
        except RuntimeError as why:  # where the processor alone can
            print(f"| {name} | | | | | | failed: {why} |")
            failed.append(name)
            continue
        verdict = "" if high <= MOST else "slower" if low > MOST else "not decided"
        failed += [name] if verdict else []
        print(f"| {name} | {placed(path)} | {cpu:.3f} | {divided:.3f} | {ratio:.3f} ({low:.3f} to {high:.3f}) | {count} | "
              f"{verdict} |", flush=True)
    print(f"{judged} judged; {len(failed)} failed or not shown to be within {MOST - 1:.0%} of the processor alone: "
          f"{', '.join(failed) or 'none'}; {len(left)} not run: {', '.join(left) or 'none'}")
    return bool(failed or left or not judged)


if __name__ == "__main__":
    sys.exit(main())
