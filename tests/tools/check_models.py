#!/usr/bin/env python3
"""check_models.py VERDICTS [MODELS_DIR] - holds ort-inspect --check against onnx.checker and onnxruntime.

Mutated models (mutate_models.py) are judged by onnx.checker (full_check), by onnxruntime (the making of a
session, without its optimizer) and by this library (VERDICTS, which does what ort-inspect --check does, and
makes a session as ort-run). The peers run in child processes; crashes and time-outs of theirs are counted and
judge nothing. Disagreements are

  missed   a peer refuses and the check says nothing, or both refuse and it says no error;
  strict   both peers accept and the check says error, or onnxruntime accepts and no session can be made;
  silent   the check says nothing and no session can be made.

Each must fall under a rule of tests/models/check_rules.txt: whose message it is, a pattern, the reason. A rule
that says runs-not holds where onnxruntime can't run the model either, on the inputs recorded beside the model
that the mutation started from, which it does run. A disagreement without a rule, a crash of our own and, in a
whole run (500 of each kind, seed 1), a rule that nothing needs are failures. Options: --count N
per kind, --seed S, --kinds GLOB, --jobs N, --keep DIR (models of unexplained disagreements), --list WHAT
(missed, strict, silent, crashes, unproved or a rule's name), --sample (a part of the bases), --tool PATH (ort-inspect: a hundredth of the models go through it, too). Closes with "N passed,
N failed, N skipped".
"""
import argparse
import collections
import fnmatch
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import draws  # noqa: E402
import model_peers  # noqa: E402
import mutate_models  # noqa: E402

RULES = HERE.parent / "models/check_rules.txt"
CONTRIB = HERE.parent / "onnx/contrib"
MAX_RULES = 30
BASE_BYTES = 400_000
CHUNK = 1000


# ---- our side

def ours(program, paths):
    """(severity, message, session status, session message) of each; a crash is one, too."""
    answers = []
    while len(answers) < len(paths):
        text = "".join(f"{p}\n" for p in paths[len(answers):])
        done = subprocess.run([program], input=text.encode(), capture_output=True)
        lines = done.stdout.decode("utf-8", "replace").split("\n")
        answers += [tuple((line.split("\t") + [""] * 4)[:4]) for line in lines[:-1]]
        if done.returncode and len(answers) == len(paths):
            raise SystemExit(f"not ok {program} ended badly behind its last answer (a leak?):\n"
                             f"{done.stderr.decode('utf-8', 'replace')[:4000]}")
        if done.returncode:
            what = done.stderr.decode("utf-8", "replace")
            found = re.search(r"(runtime error|ERROR: \w+Sanitizer).*", what)
            answers.append(("crash", f"exit {done.returncode} {found[0] if found else what[-300:]}",
                            "", ""))
    return answers[:len(paths)]


def tool_agrees(tool, path, answer):
    """The tool exits as the program's verdict says."""
    done = subprocess.run([tool, path, "--check"], capture_output=True)
    bad = answer[0] in ("error", "refused")
    return done.returncode == (3 if bad else 0)


# ---- rules

class Rule:
    def __init__(self, head, pattern, reason):
        self.name, sides, *rest = head.split()
        self.sides = ("onnx", "ort") if sides == "peers" else (sides,)
        self.runs_not = rest[:1] == ["runs-not"]
        self.kind = " ".join(rest[self.runs_not:]) or "*"
        self.reason, self.count = reason, 0
        self.pattern = re.compile(pattern, re.S)

    def is_sound(self):
        known = set(self.sides) <= {"onnx", "ort", "ours"}
        return known and self.reason and (not self.runs_not or self.sides == ("ours",))

    def fits(self, side, kind, message):
        return side in self.sides and fnmatch.fnmatch(kind, self.kind) and self.pattern.search(message)


def read_rules(path):
    rules = []
    for block in re.split(r"\n\s*\n", re.sub(r"(?m)^#.*\n", "", path.read_text()).strip()):
        if not block.strip():
            continue
        head, pattern, *reason = block.strip().splitlines()
        rule = Rule(head, pattern.strip(), " ".join(line.strip() for line in reason))
        if not rule.is_sound():
            raise SystemExit(f"{path}: rule '{rule.name}': wants 'NAME SIDE [runs-not] [KIND]' (runs-not of "
                             "what we say), a pattern, a reason")
        rules.append(rule)
    return rules


def explain(rules, side, kind, message):
    return next((rule for rule in rules if rule.fits(side, kind, message)), None)


def disagreement(verdict, answer):
    """(what, [(side, message) that a rule must explain]) or None."""
    severity, message, session, why = answer
    refuses = [(side, verdict[side]) for side in ("onnx", "ort") if verdict[side]]
    says_error = severity in ("error", "refused")
    no_session = session not in ("0", "") and severity not in ("error", "refused")
    if len(refuses) == 2 and not says_error or len(refuses) == 1 and severity in ("none", "note"):
        return "missed", refuses
    if not refuses and says_error:
        return "strict", [("ours", message)]
    if not verdict["ort"] and session not in ("0", ""):
        return "strict", [("ours", why)]
    if severity in ("none", "note") and no_session:
        return "silent", [("ours", why)]
    return None


def rules_of(rules, job, found, answer):
    """A rule, or None, for each message of a disagreement."""
    what, messages = found
    # Rules for a peer may ask for what we said, too.
    said = "" if what in ("strict", "silent") else f"\nours: {answer[1]}"
    return [explain(rules, side, job["kind"], message + said) for side, message in messages]


def prove(rules, jobs, verdicts, answers, peers):
    """Runs the models whose rules want it: "run" of their verdicts."""
    wanted = []
    for job, verdict, answer in zip(jobs, verdicts, answers):
        if answer[0] == "crash" or model_peers.crash_of(verdict):
            continue
        found = disagreement(verdict, answer)
        if found and any(rule and rule.runs_not for rule in rules_of(rules, job, found, answer)):
            wanted.append((job, verdict))
    told = peers.run([(job["path"], verdict["made"][2]) for job, verdict in wanted])
    for (_, verdict), answer in zip(wanted, told):
        # A crash there is no success either.
        verdict["run"] = "died" if answer and answer.startswith("!") else answer


# ---- bases

def features(path):
    import onnx
    model = onnx.load_model_from_string(path.read_bytes())
    graphs = [a for n in model.graph.node for a in n.attribute if a.HasField("g")]
    return {"body": bool(graphs), "learned": any(n.domain == "ai.onnx.ml" for n in model.graph.node)}


def candidates(args):
    """Node tests, real models, operators on trial; of the first two a part for --sample."""
    tests = sorted(pathlib.Path("build/conformance").glob("*/model.onnx"))
    real = sorted(pathlib.Path(args.models).glob("*/*.onnx")) if args.models else []
    if args.sample:
        rng = random.Random(args.seed)
        wanted = [p for p in tests if re.search("_ml_|test_(if|loop|scan)", str(p))]
        tests = sorted(set(rng.sample(tests, min(len(tests), 60)) + rng.sample(wanted, min(len(wanted), 20))))
        real = [p for p in real if p.stat().st_size < 60_000]
    trials = [p for name in ("trial_*", "group_norm_18*") for p in sorted(CONTRIB.glob(f"{name}/model.onnx"))]
    return tests, [p for p in tests + real if p.stat().st_size <= BASE_BYTES], trials


def good_bases(paths, trials, peers, args):
    """Those that everybody accepts; of the trials those that onnxruntime takes and the check warns of."""
    jobs = [{"kind": None, "path": str(p.resolve())} for p in paths + trials]
    verdicts = peers.judge(jobs, None)
    answers = ours(args.program, [j["path"] for j in jobs])
    good, tried = [], []
    for path, v, a in zip(paths + trials, verdicts, answers):
        if v["ort"] or a[2] != "0":
            continue
        if path in trials and a[0] == "warning":
            tried.append(path)
        elif path not in trials and not v["onnx"] and a[0] in ("none", "note"):
            good.append(path)
    print(f"bases: {len(good)} of {len(paths)} models (node tests, real models up to {BASE_BYTES} bytes), the "
          f"others are refused by a peer, or warned of; {len(tried)} of {len(trials)} operators on trial")
    return good, tried


def find_bases(peers, args, folder):
    """For each object, groups of models."""
    tests, paths, trials = candidates(args)
    good, tried = good_bases(paths, trials, peers, args)
    tests, known = set(tests), {p: features(p) for p in good}
    groups = {}
    for object in mutate_models.OBJECTS:
        fit = [p for p in good if known[p].get(object, True)]
        split = [[str(p.resolve()) for p in fit if (p in tests) == test] for test in (True, True, False)]
        groups[object] = [g for g in split if g]
    groups["trial"] = [[str(p.resolve()) for p in tried]]
    path = folder / "bases.json"
    path.write_text(json.dumps(groups))
    if args.save_bases:
        pathlib.Path(args.save_bases).write_text(json.dumps(groups))
    return path


# ---- all

class Tally:
    def __init__(self, rules):
        self.rules, self.kinds = rules, collections.Counter()
        self.agree, self.crashes, self.failures = collections.Counter(), collections.Counter(), []
        self.rows = []

    def add(self, job, verdict, answer, args):
        self.kinds[job["kind"]] += 1
        row = (job, verdict, answer)
        if answer[0] == "crash":
            self.fail("crash", row, args)
            return
        crash = model_peers.crash_of(verdict)
        if crash:
            self.crashes[crash] += 1
            self.rows.append(("crashes", None, row))
            return
        found = disagreement(verdict, answer)
        if not found:
            refused = sum(1 for s in ("onnx", "ort") if verdict[s])
            told = answer[0] in ("error", "refused", "warning")
            self.agree["all accept" if not refused and not told else
                       "accepted by both, warned of here" if not refused else
                       f"refused by {'both' if refused == 2 else 'one peer'}, told here"] += 1
            return
        what, rules = found[0], rules_of(self.rules, job, found, answer)
        if any(rule and rule.runs_not for rule in rules):
            if (verdict["run"] or "").startswith("?"):
                self.crashes["onnxruntime can't be given inputs, so that nothing shows whether it runs"] += 1
                self.rows.append(("unproved", rules, row))
                return
            if verdict["run"] is None:
                what, rules = f"{what}, and it runs", [None]
        self.rows.append((what, rules, row))
        if None in rules:
            self.fail(what, row, args)
            return
        for rule in rules:
            rule.count += 1

    def fail(self, what, row, args):
        job, verdict, answer = row
        self.failures.append((what, row))
        if args.keep:
            for path in pathlib.Path(job["path"]).parent.glob(pathlib.Path(job["path"]).stem + ".*"):
                shutil.copy(path, draws.kept(args.keep))


def one_line(text, width=200):
    return re.sub(r"\s+", " ", str(text))[:width]


def show(what, row):
    job, verdict, answer = row
    print(f"{what} {job['kind']} #{job['number']} {' '.join(verdict['made'][1])}\n"
          f"    onnx: {one_line(verdict['onnx'])}\n    ort: {one_line(verdict['ort'])}\n"
          f"    ours: {answer[0]} {one_line(answer[1])}\n    session: {one_line(answer[3])}")
    if "run" in verdict:
        print(f"    run of onnxruntime: {one_line(verdict['run'])}")


def run(args, folder):
    rules = read_rules(RULES)
    tally = Tally(rules)
    peers = model_peers.Peers(args.cache, args.jobs)
    bases = find_bases(peers, args, folder)
    jobs = [{"kind": kind, "number": n, "seed": args.seed,
             "path": str(folder / f"{kind.replace(' ', '_')}_{n}.onnx")}
            for kind in mutate_models.KINDS if fnmatch.fnmatch(kind, args.kinds)
            for n in range(args.count)]
    disobeyed = sampled = 0
    for at in range(0, len(jobs), CHUNK):
        part = jobs[at:at + CHUNK]
        verdicts = peers.judge(part, str(bases))
        answers = ours(args.program, [j["path"] for j in part])
        prove(rules, part, verdicts, answers, peers)
        for i, (job, verdict, answer) in enumerate(zip(part, verdicts, answers)):
            tally.add(job, verdict, answer, args)
            if args.tool and i % 100 == 0 and answer[0] != "crash":
                sampled += 1
                if not tool_agrees(args.tool, job["path"], answer):
                    disobeyed += 1
                    print(f"not ok the tool says otherwise: {job['kind']} #{job['number']}: {answer}")
        for job in part:
            for path in folder.glob(pathlib.Path(job["path"]).stem + ".*"):
                path.unlink()
    peers.stop()
    return tally, disobeyed, sampled


def report(args, tally, disobeyed, sampled):
    total = sum(tally.kinds.values())
    few = min(tally.kinds.values())
    print(f"{total} models of {len(tally.kinds)} kinds, at least {few} of each; seed {args.seed}")
    for name, count in sorted(tally.agree.items()):
        print(f"  {count:6} {name}")
    for name, count in sorted(tally.crashes.items()):
        print(f"  {count:6} judged by nothing: {name}")
    if sampled:
        print(f"  {sampled:6} went through the tool, too: {sampled - disobeyed} with the same verdict")
    for rule in tally.rules:
        print(f"  {rule.count:6} rule {rule.name} ({' '.join(rule.sides)}): {rule.reason}")
    for what, rules, row in tally.rows:
        if args.list and (what == args.list or rules and any(r and r.name == args.list for r in rules)):
            show(what, row)
    shown = collections.Counter()
    for what, row in tally.failures:
        shown[what] += 1
        if shown[what] <= args.show:
            show(f"not ok {what}", row)
    whole = not args.sample and args.kinds == "*" and args.seed == 1 and few >= 500
    unused = [r for r in tally.rules if not r.count] if whole else []
    for rule in unused:
        print(f"not ok rule {rule.name}: no disagreement needs it")
    if len(tally.rules) > MAX_RULES:
        print(f"not ok {len(tally.rules)} rules, at most {MAX_RULES}")
    failed = len(tally.failures) + disobeyed + len(unused) + (len(tally.rules) > MAX_RULES)
    print(f"{total - len(tally.failures)} passed, {failed} failed, {sum(tally.crashes.values())} skipped")
    return failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("models", nargs="?")
    draws.add_options(parser, "kinds", 500, "models per kind")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--list")
    parser.add_argument("--show", type=int, default=20)
    parser.add_argument("--sample", action="store_true")
    parser.add_argument("--tool")
    parser.add_argument("--cache", default="build/check_models/peers.jsonl",
                        help="what peers said, by the bytes of a model")
    parser.add_argument("--save-bases", help="the lists of models that mutations start from")
    parser.add_argument("--dump", help="a JSON line per disagreement")
    args = parser.parse_args()
    if args.models and not pathlib.Path(args.models).is_dir():
        print(f"{args.models} is not there: bases are node tests alone")
        args.models = None
    with tempfile.TemporaryDirectory(prefix="check_models.") as folder:
        tally, disobeyed, sampled = run(args, pathlib.Path(folder))
    if args.dump:
        with open(args.dump, "w") as f:
            for what, rules, (job, verdict, answer) in tally.rows:
                f.write(json.dumps([what, [r and r.name for r in rules or []], job["kind"],
                                    job["number"], verdict, answer]) + "\n")
    sys.exit(1 if report(args, tally, disobeyed, sampled) else 0)


if __name__ == "__main__":
    main()
