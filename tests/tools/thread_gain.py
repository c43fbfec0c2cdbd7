#!/usr/bin/env python3
"""thread_gain.py - what each node of a model gains by more threads.

usage: thread_gain.py ORT_PROFILE MODEL... [--threads N] [--rounds N] [--seconds S] [--top N]
                      [-- OPTION...]     (options of ort-profile, such as --isa vnni)
       thread_gain.py --traces ONE.json MANY.json [--top N]     (reports of ort-profile --json)

Runs ort-profile on a model with one thread and with N (2) by turns, and prints the nodes by the
time that a perfect division would save: their time with one thread, with N, and the efficiency, which is
the time of one thread over N times that of N. What stands first is worth looking at first. A table
by operator follows, and the whole run. Each time is the median of the rounds' medians, so that a
processor that is slow for a while counts once.
"""
import argparse
import json
import statistics
import subprocess
import sys


def report_of(profile, model, threads, seconds, options):
    """One run of ort-profile: its report."""
    command = [profile, model, "--threads", str(threads), "--seconds", str(seconds), "--json",
               "--by", "node", "--top", "0", "--no-peak", "-q", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip() or f"exit status {done.returncode}")
    return json.loads(done.stdout)


def nodes_of(reports):
    """{name of a node: (operator, median milliseconds of a run, shapes)} of several reports."""
    nodes = {}
    for report in reports:
        for node in report["nodes"]:
            each = node["calls"] / report["runs"]
            shapes = " ".join("x".join(map(str, i.get("shape", "?"))) for i in node["inputs"])
            found = nodes.setdefault(f'{node["index"]} {node["name"]}',
                                     (node["op_type"], [], shapes))
            found[1].append(node["spread_ms"]["p50"] * each)
    return {name: (op, statistics.median(times), shapes)
            for name, (op, times, shapes) in nodes.items()}


def row(name, one, many, threads, rest):
    efficiency = one / (threads * many) if many else 1
    lost = many - one / threads
    return f"{name:32.32} {one:9.3f} {many:9.3f} {efficiency:6.2f} {lost:9.3f}  {rest}"


def print_gains(model, one, many, threads, top):
    """The three tables of a model, of reports with one thread and with `threads`."""
    single, shared = nodes_of(one), nodes_of(many)
    both = [name for name in single if name in shared]
    operators = {}
    for name in both:
        sums = operators.setdefault(single[name][0], [0, 0, 0])
        sums[0] += single[name][1]
        sums[1] += shared[name][1]
        sums[2] += 1
    print(f"\n{model}, {threads} threads\n")
    print(f"{'node':32} {'one, ms':>9} {'many':>9} {'eff.':>6} {'lost':>9}")
    lost = {name: shared[name][1] - single[name][1] / threads for name in both}
    for name in sorted(both, key=lambda n: -lost[n])[:top or None]:
        print(row(name, single[name][1], shared[name][1], threads,
                  f"{single[name][0]} {single[name][2]:.90}"))
    print()
    for op, (a, b, count) in sorted(operators.items(), key=lambda o: o[1][0] / threads - o[1][1]):
        print(row(op, a, b, threads, f"{count} nodes"))
    a, b = (statistics.median(r["latency_ms"]["p50"] for r in side) for side in (one, many))
    print(row("run", a, b, threads, ""))


def measure(profile, model, options, extra):
    one, many = [], []
    for number in range(options.rounds):
        for threads in sorted((1, options.threads), reverse=number % 2 == 1):
            (one if threads == 1 else many).append(
                report_of(profile, model, threads, options.seconds, extra))
    return one, many


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="+")
    parser.add_argument("--traces", action="store_true", help="files are two reports")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--top", type=int, default=12, help="rows of nodes; 0: all")
    own, extra = sys.argv[1:], []
    if "--" in own:
        own, extra = own[:own.index("--")], own[own.index("--") + 1:]
    options = parser.parse_args(own)
    if options.traces:
        if len(options.files) != 2:
            parser.error("--traces takes two reports")
        one, many = ([json.load(open(name, encoding="utf-8"))] for name in options.files)
        print_gains(one[0]["model"], one, many, many[0]["threads"], options.top)
        return 0
    status = 0
    for model in options.files[1:]:
        try:
            one, many = measure(options.files[0], model, options, extra)
        except RuntimeError as error:
            print(f"thread-gain: {model}: {error}", file=sys.stderr)
            status = 1
            continue
        print_gains(model, one, many, options.threads, options.top)
        sys.stdout.flush()
    return status


if __name__ == "__main__":
    sys.exit(main())
