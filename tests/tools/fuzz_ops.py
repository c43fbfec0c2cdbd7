#!/usr/bin/env python3
"""fuzz_ops.py - random legal cases of every operator of this build beside its peers.

usage: fuzz_ops.py [--list] [--seed N] [--cases N] [--case K] [--jobs N] [--verbose] [OPERATOR...]

OPERATOR is a name, DOMAIN.NAME or DOMAIN.*. The peers are onnxruntime where it has a kernel, else a
formula where the generator has one, else onnx's reference evaluator (tests/fuzz/ops/peers.py).

Generators stand in tests/fuzz/ops, one function per operator or family; case K of an operator
depends on the seed, the operator's name and K alone. Nothing runs when an operator of the registry
has neither a generator nor a reason in families.py; --list shows them all. A case is loaded and
run in a child process of its operator: when the child dies, the case that it was running has
failed and a new child goes on behind it. ORT_ISA chooses the kernel tier, ORT_LIBRARY another
libort.so.

Prints a line per operator: cases, differences, versions, element types, peers and rules; a line per
failure; a line per rule of tests/fuzz/known.txt with its cases, and closes with "N passed, N
failed, N skipped". Skipped are cases that no peer runs, and differences that a rule explains.
"""
import argparse
import concurrent.futures
import multiprocessing
import os
import pathlib
import re
import sys
import traceback
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "fuzz"))
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
import numpy as np  # noqa: E402

from ops import families  # noqa: E402, F401
from ops import case as cases  # noqa: E402
from ops import compare, known, ours, peers, schemas  # noqa: E402

SHORT = {"ai.onnx.ml": "ml", "ai.onnx.preview": "preview", "com.microsoft": "ms",
         "ai.onnx.preview.training": "training", "com.microsoft.nchwc": "nchwc"}
LINES = known.load()
TIMEOUT = 120  # seconds for one case


def draw(domain, name, seed, index):
    """Case `index` and the generator that goes on drawing its form for this library."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode()), index])
    versions = schemas.schemas(domain, name)
    for _ in range(200):
        gen = cases.Gen(rng, versions[int(rng.integers(len(versions)))])
        try:
            check = cases.GENERATORS[domain, name](gen)
            case = gen.case()
            case.check = check if callable(check) else None
            return case, rng
        except cases.Redraw:
            continue
    raise RuntimeError("200 draws led to nothing legal")


def judge(runtime, case, rng, tell):
    """(outcome, peer, message)"""
    try:
        tell("peer")
        peer, want = peers.expected(case)
    except peers.NoPeer as error:
        peer, want, reason = "-", None, str(error)
    tell("ours")
    model, feeds = case.model(rng=rng)
    try:
        got = runtime.run(model.SerializeToString(), list(feeds.values()))
    except ours.OrtError as error:
        # Types that a schema lists and that neither side has a kernel for.
        if error.status == ours.UNSUPPORTED and peer in ("-", "float"):
            return "skip", "-", f"nobody's kernel: {error}"
        return "fail", peer, f"refused: {error}"
    if want is None:
        return "skip", peer, f"no peer: {reason}"
    if peer == "float":
        case.tolerance.in_float = True
        case.tolerance.ulps += 1  # its inputs were rounded
    message = different(case, got, want)
    if message is None:
        return "pass", peer, ""
    line = known.explains(LINES, case, peer, got, want, lambda a, b, k: same(case, a, b))
    if not line:
        return "fail", peer, f"{message} [{peer}; {second_opinion(case, peer, got)}]"
    return the_others(case, peer, got, line)


def the_others(case, first, got, line):
    """A line of known.txt sets the first peer aside: those behind it must agree with us."""
    names = list(peers.PEERS)
    behind = [p for p in names[names.index(first) + 1 if first in names else 0:]
              if p in case.peers]
    try:
        peer, want = peers.expected(case, behind)
    except peers.NoPeer:
        return "known", first, line.rule
    message = different(case, got, want)
    if message:
        return "fail", peer, f"{line.rule} sets {first} aside, but {peer}: {message}"
    return "known", first, line.rule


def same(case, a, b):
    return compare.difference(a, b, case.tolerance) is None


def different(case, got, want):
    for k, (a, b) in enumerate(zip(got, want, strict=True)):
        if k == 0 and case.ignore is not None:
            a, b = np.where(case.ignore, 0, a), np.where(case.ignore, 0, b)
        if case.shapes_only and isinstance(b, np.ndarray):
            message = None if (a.dtype, a.shape) == (b.dtype, b.shape) else \
                f"{a.dtype}{a.shape}, expected {b.dtype}{b.shape}"
        else:
            message = compare.difference(a, b, case.tolerance)
        if message:
            return f"output {k} {message}"
    return case.check(got) if case.check else None


def second_opinion(case, peer, got):
    other = [p for p in peers.PEERS if p != peer]
    try:
        name, want = peers.expected(case, other)
    except peers.NoPeer:
        return "no second peer"
    message = different(case, got, want)
    return f"{name} agrees with us" if message is None else f"{name}: {message[:120]}"


def child(connection, domain, name, seed, first, last, threads):
    runtime = ours.Runtime(threads)
    for index in range(first, last):
        try:
            case, rng = draw(domain, name, seed, index)
            facts = (case.version, sorted(set(case.types.values())), case.describe())
            connection.send(("drawn", index, facts))
            result = judge(runtime, case, rng, lambda phase: connection.send((phase, index, None)))
        except Exception:  # a defect of the generator: shown, and a failure
            result = ("fail", "-", "generator: " + " | ".join(
                traceback.format_exc(limit=-3).split("\n")[1:]))
        connection.send(("done", index, result))
    connection.send(("end", last, None))


class Operator:
    """The cases of one operator, run one after the other in as many children as it takes."""

    def __init__(self, domain, name, options):
        self.domain, self.name, self.options = domain, name, options
        self.count = dict.fromkeys(("pass", "fail", "skip", "known"), 0)
        self.versions, self.types, self.peers, self.lines = set(), set(), {}, []
        self.rules = {}

    def take(self, index, facts, result):
        outcome, peer, message = result
        self.count[outcome] += 1
        self.peers[peer] = self.peers.get(peer, 0) + 1
        if outcome == "known":
            self.rules[message] = self.rules.get(message, 0) + 1
        if facts:
            self.versions.add(facts[0])
            self.types.update(re.sub(r"tensor\((\w+)\)", r"\1", t) for t in facts[1])
        if outcome == "fail" or (self.options.verbose and outcome != "pass"):
            text = facts[2] if facts else self.name
            message = " ".join(message.split())[:700]
            self.lines.append(f"{outcome.upper()} {self.name} SEED={self.options.seed} "
                              f"CASE={index}: {text}: {message}")

    def run(self):
        first, last = self.options.range
        while first < last:
            first = self.run_child(first, last)
        return self

    def run_child(self, first, last):
        context = multiprocessing.get_context("fork")
        here, there = context.Pipe(duplex=False)
        process = context.Process(target=child, daemon=True, args=(
            there, self.domain, self.name, self.options.seed, first, last, self.options.threads))
        process.start()
        there.close()
        index, phase, facts = first, "drawn", None
        try:
            while here.poll(TIMEOUT):
                phase, index, value = here.recv()
                if phase == "drawn":
                    facts = value
                elif phase == "done":
                    self.take(index, facts, value)
                    facts = None
                elif phase == "end":
                    return last
            how = f"took longer than {TIMEOUT} s"
        except EOFError:
            process.join()
            how = f"ended the process with {process.exitcode}"
        finally:
            process.kill()
            process.join()
        if phase == "done":
            return index + 1
        result = ("skip", "-", f"the peer {how}") if phase == "peer" else ("fail", "-", how)
        self.take(index, facts, result)
        return index + 1


def row(o):
    differences = o.count["fail"] + o.count["known"]
    peers_text = " ".join(f"{k}:{v}" for k, v in [*sorted(o.peers.items()), *o.rules.items()])
    versions = ",".join(map(str, sorted(o.versions)))
    name = o.name if not o.domain else f"{SHORT.get(o.domain, o.domain)}.{o.name}"
    return f"{name:32} {sum(o.count.values()):5} {differences:5}  {versions:28} " \
           f"{len(o.types):3}  {peers_text}"


def select(names):
    known_ops = sorted(cases.GENERATORS)
    forms = {key: {key[1], f"{key[0] or 'ai.onnx'}.{key[1]}", f"{key[0]}.*"} for key in known_ops}
    wrong = set(names) - set().union(*forms.values())
    if wrong:
        sys.exit(f"fuzz_ops: no generator for {', '.join(sorted(wrong))}")
    return [key for key in known_ops if not names or forms[key] & set(names)]


def listing():
    for domain, name in sorted(cases.GENERATORS):
        print(f"{domain or 'ai.onnx'}.{name}")
    for (domain, name), why in sorted(families.WITHOUT.items()):
        print(f"{domain}.{name}: not drawn: {why}")
    print(f"{len(cases.GENERATORS)} operators drawn, {len(families.WITHOUT)} not, 0 uncovered")
    return 0


def uncovered():
    """Operators of this build that no generator draws and families.WITHOUT doesn't excuse, and
    generators and excuses of operators that this build hasn't."""
    return schemas.registry() ^ (set(cases.GENERATORS) | set(families.WITHOUT))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--case", type=int)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("operators", nargs="*")
    options = parser.parse_args()
    options.range = (0, options.cases) if options.case is None else (options.case, options.case + 1)
    left = sorted(uncovered())
    if left:
        sys.exit("fuzz_ops: no generator and no reason, or none of this build: " +
                 ", ".join(f"{d or 'ai.onnx'}.{n}" for d, n in left))
    if options.list:
        return listing()
    print(f"seed {options.seed}, {options.cases} cases an operator, "
          f"tier {ours.Runtime().isa()}", flush=True)
    print(f"{'operator':32} {'cases':>5} {'diff':>5}  {'versions':28} {'types':>3}  peers")
    total = dict.fromkeys(("pass", "fail", "skip", "known"), 0)
    met = dict.fromkeys((line.rule for line in LINES), 0)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        work = [Operator(*key, options) for key in select(options.operators)]
        for o in pool.map(Operator.run, work):
            print(row(o))
            print("".join(line + "\n" for line in o.lines), end="", flush=True)
            for k, v in o.count.items():
                total[k] += v
            for k, v in o.rules.items():
                met[k] += v
    for line in LINES:
        if met[line.rule] or not options.operators:
            print(f"known {line.rule}: {met[line.rule]} cases, {line.peer}")
    print(f"seed {options.seed}: {total['known']} differences stand in tests/fuzz/known.txt, "
          f"{total['skip']} cases ran in no peer")
    print(f"{total['pass']} passed, {total['fail']} failed, {total['known'] + total['skip']} skipped")
    return 1 if total["fail"] else 0


if __name__ == "__main__":
    sys.exit(main())
