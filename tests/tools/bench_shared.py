#!/usr/bin/env python3
"""bench_shared.py - two threads against one where processors are shared.

usage: bench_shared.py BENCH_PROGRAM MODELS_DIR... [--only GLOB] [--scene NAME] [--rounds N]
                       [--ms MS] [--foreign PART] [--most ROUNDS] [--onnxruntime LIB.so]
                       [--openvino LIB.so] [--old BENCH_PROGRAM]

Two processors of this machine (the first two of the affinity mask), and on them

  pair   two processes at a time, each running the same model
  hog    one process beside a busy loop
  alone  one process

with one thread each and with two. A round is MS milliseconds of every one of these, in an order
that rotates, while the processes of the others wait for their turn; what counts is the mean of a
run, since a run that waits for a processor is what a user sees, and of the rounds the median of
the ratios. A round in which processes of others took more than --foreign of the two processors (a
twentieth) is repeated. --old: another build of the program, and the ratio new / old. Exit status 1
when nothing fits --only, a model fails here, or two threads are slower than one: in `pair` or `hog`
by a ratio above 1.02, `alone` by the whole of its interval.

`alone` goes on beyond its rounds, to at most --most, until the interval is narrower than 0.1. Each
row of it says what the machine itself gives at the time: what two busy loops get done together as a
multiple of what one does (virtual processors may share a core), and what part of its processors'
time the host took. At its end stands what the second thread gains over all models of more than a
millisecond.
"""
import argparse
import fnmatch
import multiprocessing
import os
import pathlib
import statistics
import subprocess
import sys
import time

LIMIT = 1.02
WIDTH = 0.1     # of an interval that tells enough
LEAST_MS = 1    # shorter runs have little to share
PATIENCE = 40   # repeated rounds, for each that counts
COPIES = {"pair": 2, "hog": 1, "alone": 1}


class Worker:
    """A process with one model, obeying the commands of tests/bench/worker.c."""

    def __init__(self, program, side, library, folder, threads):
        self.process = subprocess.Popen(
            [program, "--worker", side, library, folder, str(threads), "0"], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.answer()
        self.tell("first")
        self.answer()

    def tell(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def answer(self):
        line = self.process.stdout.readline().strip() or "error the process died"
        if not line.startswith("ok "):
            raise RuntimeError(line.removeprefix("error "))
        return float(line[3:])

    def finish(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def spent(pids, field=0):
    """Nanoseconds that processes have run, all their threads; field 1: waited for a processor."""
    return sum(int(path.read_text().split()[field]) for pid in pids
               for path in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"))


def idle(processors):
    """Nanoseconds that processors had nothing to do, since the machine started."""
    names = {f"cpu{number}" for number in processors}
    lines = [line.split() for line in pathlib.Path("/proc/stat").read_text().splitlines()]
    ticks = sum(int(line[4]) + int(line[5]) for line in lines if line[0] in names)
    return ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def timed(workers, scene, milliseconds):
    """Mean milliseconds of a run while `workers` run side by side in a scene, and what part of the
    processors others took away meanwhile."""
    hog, pids, processors = None, [w.process.pid for w in workers], os.sched_getaffinity(0)
    if scene == "hog":
        hog = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        time.sleep(0.05)
        pids.append(hog.pid)
    begin, ours, unused = time.monotonic_ns(), spent(pids), idle(processors)
    waited = spent(pids, 1)
    for worker in workers:
        worker.tell(f"beside {milliseconds}")
    times = [worker.answer() for worker in workers]
    all_time = (time.monotonic_ns() - begin) * len(processors)
    foreign = 1 - (spent(pids) - ours + idle(processors) - unused) / all_time
    if scene == "alone":  # what others do on a processor that it leaves is no harm
        foreign = (spent(pids, 1) - waited) / all_time
    if hog:
        hog.kill()
        hog.wait()
    return statistics.mean(times), foreign


def timed_in_peace(workers, scene, milliseconds, most, patience):
    """The same, again until others had less than `most` of the processors; patience: a list of one
    number, how often that may still happen."""
    while True:
        mean, foreign = timed(workers, scene, milliseconds)
        if foreign < most or patience[0] <= 0:
            return mean
        patience[0] -= 1


def loop_for(seconds):
    """How often a loop goes round in that time."""
    count, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        count += 1
    return count


def machine_gain():
    """What two processes of the same work get done beside each other, over what one does alone."""
    with multiprocessing.Pool(2) as both:
        both.map(loop_for, [0.01, 0.01], 1)
        alone = both.map(loop_for, [0.1], 1)[0]
        return sum(both.map(loop_for, [0.1, 0.1], 1)) / alone


def stolen():
    """Ticks that the host took from this machine, and all ticks, since it started."""
    ticks = [int(t) for t in pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    return ticks[7], sum(ticks)


def interval(values):
    """Of the median, at 95 %: order statistics of the binomial distribution."""
    ordered, count = sorted(values), len(values)
    skip = max(0, int((count - 1.96 * count ** 0.5) / 2))
    return ordered[skip], ordered[count - 1 - skip]


def ratio(times, above, below):
    if above not in times or below not in times:
        return None
    return [a / b for a, b in zip(times[above], times[below])]


def is_narrow(times):
    """Whether the interval of ours is known well enough, or can't be."""
    ratios = ratio(times, ("ours", 2), ("ours", 1))
    if not ratios:
        return True
    low, high = interval(ratios)
    return high - low < WIDTH


def measure(options, sides, folder, scene):
    """{(side, threads): [milliseconds of each round]}."""
    workers, times = {}, {}
    for side, (program, name, library) in sides.items():
        try:
            for threads in (1, 2):
                workers[side, threads] = [
                    Worker(program, name, library, folder, threads) for _ in range(COPIES[scene])]
                times[side, threads] = []
        except RuntimeError as error:
            print(f"{folder}: {side}: {error}", file=sys.stderr)
            workers.pop((side, 1), None)
    keys = list(workers)
    if not keys:
        return times
    for key in keys:
        timed(workers[key], scene, options.ms)
    patience = [PATIENCE * options.rounds]
    for number in range(options.most if scene == "alone" else options.rounds):
        if number >= options.rounds and is_narrow(times):
            break
        for key in keys[number % len(keys):] + keys[:number % len(keys)]:
            time.sleep(0.05)  # threads of a runtime may spin on after a run
            times[key].append(
                timed_in_peace(workers[key], scene, options.ms, options.foreign, patience))
    if patience[0] <= 0:
        print(f"{folder}: {scene}: never in peace", file=sys.stderr)
    for group in workers.values():
        for worker in group:
            worker.finish()
    return times


def summary(sides, gains):
    """What the second thread gains each side, over the models that all of them run."""
    print()
    for side in sides:
        ratios = [gain[side] for gain in gains if len(gain) == len(sides)]
        if ratios:
            print(f"{side}: the second thread gains {1 / statistics.geometric_mean(ratios):.3f} in "
                  f"the geometric mean of {len(ratios)} models of more than {LEAST_MS} ms")


def gains_of(sides, times):
    """{side: its median of two threads over one}; {} for a model that is too short."""
    if statistics.median(times.get(("ours", 1)) or [0]) < LEAST_MS:
        return {}
    return {side: statistics.median(ratio(times, (side, 2), (side, 1)))
            for side in sides if (side, 2) in times}


def report(name, scene, sides, times, machine=""):
    """Print one row; True when the gate holds."""
    good, cells = True, []
    for side in sides:
        ratios = ratio(times, (side, 2), (side, 1))
        if not ratios:
            cells += ["-"] * 3
            good = good and side != "ours"  # nothing is compared
            continue
        low, high = interval(ratios)
        median = statistics.median(ratios)
        cells += [f"{statistics.median(times[side, t]):.4g}" for t in (1, 2)]
        cells += [f"{median:.3f} ({low:.2f} to {high:.2f})"]
        good = good and (side != "ours" or (low <= 1 if scene == "alone" else median <= LIMIT))
    for threads in (1, 2) if "old" in sides else ():
        ratios = ratio(times, ("ours", threads), ("old", threads))
        if not ratios:
            cells.append("-")
            continue
        low, high = interval(ratios)
        cells += [f"{statistics.median(ratios):.3f} ({low:.2f} to {high:.2f})"]
    print(f"| {name} | {scene} | " + " | ".join(cells) + f" |{machine}" +
          ("" if good else " slower, or failed"))
    sys.stdout.flush()
    return good


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--only", default="*", help="models, several separated by blanks")
    parser.add_argument("--scene", default="pair hog")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--ms", type=int, default=300)
    parser.add_argument("--foreign", type=float, default=0.05)
    parser.add_argument("--most", type=int, default=40)
    parser.add_argument("--onnxruntime")
    parser.add_argument("--openvino")
    parser.add_argument("--old")
    options = parser.parse_args()
    processors = sorted(os.sched_getaffinity(0))[:2]
    if len(processors) < 2:
        print("bench-shared: skipped, this machine has one processor", file=sys.stderr)
        return 3
    os.sched_setaffinity(0, processors)
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    sides = {"ours": (options.program, "ours", "")}
    if options.old:
        sides["old"] = (options.old, "ours", "")
    if options.onnxruntime:
        sides["onnxruntime"] = (options.program, "onnxruntime", options.onnxruntime)
    if options.openvino:
        sides["openvino"] = (options.program, "openvino", options.openvino)
    heads = [f"{side}, {what}" for side in sides for what in ("1 thread", "2", "2 / 1 (95 %)")]
    heads += ["new / old, 1 thread", "2"] if options.old else []
    print("| model | scene | " + " | ".join(heads) + " |")
    print("| --- | --- |" + " --: |" * len(heads))
    good, gains = True, []
    folders = [path for folder in options.folders for path in sorted(pathlib.Path(folder).iterdir())
               if (path / "model.onnx").exists()
               and any(fnmatch.fnmatch(path.name, glob) for glob in options.only.split())]
    if not folders:
        print("bench-shared: no model's name fits --only", file=sys.stderr)
        return 1
    for folder in folders:
        for scene in options.scene.split():
            machine, before = "", stolen()
            times = measure(options, sides, str(folder), scene)
            if scene == "alone":
                taken, all_ticks = (now - then for now, then in zip(stolen(), before))
                machine = f" {machine_gain():.2f}, {100 * taken / max(all_ticks, 1):.1f} % stolen"
                gains.append(gains_of(sides, times))
            good = report(folder.name, scene, sides, times, machine) and good
    summary(sides, [gain for gain in gains if gain])
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
