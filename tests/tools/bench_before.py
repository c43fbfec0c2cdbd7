#!/usr/bin/env python3
"""bench_before.py BEFORE NOW MODEL...: does this build run and start models more slowly than another one?

BEFORE and NOW are ort-run of two builds. Each model runs in both by turns, with one thread, on its own test_data_set_0 where
it has one, else on values that are made up. A round's ratio is that of the least runs, or of the least times until a session
is ready of STARTS processes; rounds go on until the interval (95 %) of the ratios' median lies on one side of 1.02, for at
most ROUNDS rounds. Exit status 1 where it lies above, or isn't decided: those are named at the end.
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys

import intervals

ROUNDS, STARTS = int(os.environ.get("ROUNDS", "30")), int(os.environ.get("STARTS", "5"))
SECONDS, MOST = os.environ.get("SECONDS_EACH", "0.25"), 1.02


def report(program, path, *options):
    own = path.parent / "test_data_set_0"
    inputs = ["-i", own] if own.is_dir() else ["--random", "1"]
    done = subprocess.run([program, path, *inputs, "--threads", "1", "--json", *options], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return json.loads(done.stdout)


def run_ms(program, path):
    return report(program, path, "--seconds", SECONDS)["latency_ms"]["min"]


def ready_ms(program, path):
    return min(report(program, path)["load_ms"] for _ in range(STARTS))


def judge(measure, before, now, path):
    """The least milliseconds of both, the median ratio, its interval, how many rounds."""
    seen = {before: [], now: []}

    def ratio():
        for program in (before, now) if len(seen[now]) % 2 else (now, before):
            seen[program].append(measure(program, path))
        return seen[now][-1] / seen[before][-1]

    decided = intervals.decide(ratio, MOST, ROUNDS)
    return min(seen[before]), min(seen[now]), *decided


def main():
    before, now, *models = sys.argv[1:]
    failed, ratios = [], {run_ms: [], ready_ms: []}
    print("| model | before ms | now ms | ratio | ready before | ready now | ratio |\n"
          "| --- | --: | --: | --: | --: | --: | --: |")
    for path in map(pathlib.Path, models):
        name, cells = path.parent.name if path.name == "model.onnx" else path.stem, []
        for measure in (run_ms, ready_ms):
            old, new, median, (low, high), rounds = judge(measure, before, now, path)
            ratios[measure].append(median)
            what = "" if high <= MOST else " slower" if low > MOST else " not decided"
            failed += [f"{name} ({measure.__name__[:-3]}{what})"] if what else []
            cells.append(f"{old:.3f} | {new:.3f} | {median:.3f} ({low:.3f} to {high:.3f}, {rounds}){what}")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    print("mean ratio: run {:.3f}, ready {:.3f}; slower or not decided: {}".format(
        *(statistics.geometric_mean(ratios[m]) for m in (run_ms, ready_ms)), ", ".join(failed) or "none"))
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
