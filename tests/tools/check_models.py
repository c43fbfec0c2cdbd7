#!/usr/bin/env python3
"""check_models.py VERDICTS [MODELS_DIR] - holds ort-inspect --check against onnx.checker and onnxruntime.

Mutated models (mutate_models.py) are judged by onnx.checker (full_check), by onnxruntime (the making of a
session, without its optimizer) and by this library (VERDICTS, which does what ort-inspect --check does, and
makes a session as ort-run). The peers run in child processes; crashes and time-outs of theirs are counted and
judge nothing. Disagreements are

  missed   a peer refuses and the check says nothing, or both refuse and it says no error;
  strict   both peers accept and the check says error, or onnxruntime accepts and no session can be made;
  silent   the check says nothing and no session can be made.

Each must fall under a rule of tests/models/check_rules.txt: whose message it is, a pattern, the reason. A
disagreement without a rule, a rule that nothing needs and a crash of our own are failures. Options: --count N
per kind, --seed S, --kinds GLOB, --jobs N, --keep DIR (models of unexplained disagreements), --list WHAT
(missed, strict, silent, crashes or a rule's name: a line per model), --sample (a part of the bases; rules need
not be used), --tool PATH (ort-inspect: a hundredth of the models go through it, too). Closes with "N passed,
N failed, N skipped".
"""
import argparse
import collections
import fnmatch
import hashlib
import importlib.metadata
import json
import os
import pathlib
import queue
import random
import re
import resource
import select
import shutil
import subprocess
import sys
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import mutate_models  # noqa: E402

RULES = HERE.parent / "models/check_rules.txt"
MAX_RULES = 30
BASE_BYTES = 400_000
SECONDS = 60
CHUNK = 1000
MEMORY = 8 << 30


# ---- the peers, in a child process

def peer_onnx(path):
    import onnx
    try:
        onnx.checker.check_model(path, full_check=True)
    except Exception as e:      # whatever it says is a refusal
        return f"{type(e).__name__}: {e}"
    return None


def peer_runtime(path):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as e:
        return f"{type(e).__name__}: {e}"
    return None


def digest(path):
    """Of a model and its data: what peers said of the same bytes needn't be asked again."""
    data = path.with_suffix(".bin")
    bytes = path.read_bytes() + (data.read_bytes() if data.exists() else b"")
    return hashlib.sha1(bytes).hexdigest()


def read_cache(path):
    """Verdicts by digest. A file of other versions of the peers is of no use."""
    path = pathlib.Path(path)
    lines = path.read_text().splitlines() if path.exists() else []
    if not lines or lines[0] != peer_versions():
        return {}
    return {key: (onnx, ort) for key, onnx, ort in map(json.loads, lines[1:])}


def peer_versions():
    return " ".join(f"{name} {importlib.metadata.version(name)}" for name in ("onnx", "onnxruntime"))


def work():
    """A job per line of stdin; lines of answers: made, onnx, ort."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answers = os.fdopen(os.dup(1), "w")     # the peers write to stdout, too
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    import onnxruntime
    onnxruntime.set_default_logger_severity(4)
    bases = known = None
    for line in sys.stdin:
        job = json.loads(line)
        place = None
        known = read_cache(job["cache"]) if known is None else known
        if job["kind"]:
            if bases is None:
                bases = {o: [[pathlib.Path(p) for p in g] for g in groups] for o, groups in
                         json.loads(pathlib.Path(job["bases"]).read_text()).items()}
            mutant = mutate_models.mutate(job["seed"], job["kind"], job["number"], bases,
                                          pathlib.Path(job["path"]).with_suffix(".bin").name)
            mutant.write(job["path"])
            place = mutant.place
        key = digest(pathlib.Path(job["path"]))
        onnx, ort = known.get(key, (None, None))
        for name, answer in (("made", lambda _: [key, place]),
                             ("onnx", peer_onnx if key not in known else lambda _: onnx),
                             ("ort", peer_runtime if key not in known else lambda _: ort)):
            answers.write(json.dumps([name, answer(job["path"])]) + "\n")
            answers.flush()


class Peer:
    """A child process that judges models; a new one after a crash."""

    def __init__(self, cache):
        self.child, self.buffer, self.cache = None, b"", cache

    def start(self):
        self.child = subprocess.Popen([sys.executable, __file__, "--work"], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.buffer = b""

    def line(self):
        while b"\n" not in self.buffer:
            ready, _, _ = select.select([self.child.stdout], [], [], SECONDS)
            more = os.read(self.child.stdout.fileno(), 1 << 16) if ready else b""
            if not more:
                self.child.kill()
                self.child.wait()
                died, self.child = "died" if ready else "hung", None
                raise EOFError(died)
            self.buffer += more
        line, _, self.buffer = self.buffer.partition(b"\n")
        return json.loads(line)

    def judge(self, job, bases):
        """{"made": place, "onnx": message, "ort": message}; in place of a verdict "!" and what happened."""
        verdict = {}
        skip = ()
        if self.child is None:
            self.start()
        job = dict(job, bases=bases, cache=self.cache)
        try:
            self.child.stdin.write((json.dumps(job) + "\n").encode())
            self.child.stdin.flush()
            verdict["key"], verdict["made"] = self.line()[1]
            for _ in range(2):
                name, answer = self.line()
                verdict[name] = answer
        except (EOFError, BrokenPipeError) as e:
            for name in ("made", "onnx", "ort"):
                if name not in verdict:
                    verdict[name] = f"!{e}"
                    skip = name
                    break
            verdict.setdefault("ort", "!not asked" if skip != "ort" else verdict.get("ort"))
        return verdict

    def stop(self):
        if self.child:
            self.child.stdin.close()
            self.child.wait()


def judge_all(jobs, bases, args):
    """Verdicts of the peers, in the order of the jobs."""
    todo, results = queue.Queue(), [None] * len(jobs)
    for pair in enumerate(jobs):
        todo.put(pair)

    def run():
        peer = Peer(args.cache)
        while True:
            try:
                i, job = todo.get_nowait()
            except queue.Empty:
                break
            results[i] = peer.judge(job, bases)
        peer.stop()
    threads = [threading.Thread(target=run) for _ in range(args.jobs)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    keep(args.cache, results)
    return results


def keep(cache, verdicts):
    """A crash isn't kept."""
    path = pathlib.Path(cache)
    known = read_cache(path)
    if not known:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(peer_versions() + "\n")
    with path.open("a") as f:
        for v in verdicts:
            crashed = any(str(v.get(name)).startswith("!") for name in ("made", "onnx", "ort"))
            if "key" in v and v["key"] not in known and not crashed:
                f.write(json.dumps([v["key"], v["onnx"], v["ort"]]) + "\n")


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
    def __init__(self, name, side, kind, pattern, reason):
        self.name, self.side, self.kind, self.reason, self.count = name, side, kind, reason, 0
        self.pattern = re.compile(pattern, re.S)

    def fits(self, side, kind, message):
        return self.side == side and fnmatch.fnmatch(kind, self.kind) and self.pattern.search(message)


def read_rules(path):
    rules = []
    for block in re.split(r"\n\s*\n", re.sub(r"(?m)^#.*\n", "", path.read_text()).strip()):
        if not block.strip():
            continue
        head, pattern, *reason = block.strip().splitlines()
        name, side, *kind = head.split(maxsplit=2)
        if side not in ("onnx", "ort", "ours") or not reason:
            raise SystemExit(f"{path}: rule '{name}': wants 'NAME SIDE [KIND]', a pattern, a reason")
        rules.append(Rule(name, side, kind[0] if kind else "*", pattern.strip(),
                          " ".join(line.strip() for line in reason)))
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


# ---- bases

def features(path):
    import onnx
    model = onnx.load_model_from_string(path.read_bytes())
    graphs = [a for n in model.graph.node for a in n.attribute if a.HasField("g")]
    return {"body": bool(graphs), "learned": any(n.domain == "ai.onnx.ml" for n in model.graph.node)}


def find_bases(args, folder):
    """For each object, groups of models; all of them are accepted by everybody."""
    tests = sorted(pathlib.Path("build/conformance").glob("*/model.onnx"))
    real = sorted(pathlib.Path(args.models).glob("*/*.onnx")) if args.models else []
    if args.sample:
        rng = random.Random(args.seed)
        wanted = [p for p in tests if re.search("_ml_|test_(if|loop|scan)", str(p))]
        tests = sorted(set(rng.sample(tests, min(len(tests), 60)) + rng.sample(wanted, min(len(wanted), 20))))
        real = [p for p in real if p.stat().st_size < 60_000]
    paths = [p for p in tests + real if p.stat().st_size <= BASE_BYTES]
    jobs = [{"kind": None, "path": str(p.resolve())} for p in paths]
    verdicts = judge_all(jobs, None, args)
    answers = ours(args.program, [j["path"] for j in jobs])
    good = [p for p, v, a in zip(paths, verdicts, answers)
            if not v["onnx"] and not v["ort"] and a[0] in ("none", "note") and a[2] == "0"]
    print(f"bases: {len(good)} of {len(paths)} models (node tests, real models up to {BASE_BYTES} "
          "bytes); the others are refused by a peer, or warned of")
    known = {p: features(p) for p in good}
    groups = {}
    for object in mutate_models.OBJECTS:
        fit = [p for p in good if known[p].get(object, True)]
        split = [[str(p.resolve()) for p in fit if (p in known) and ("conformance" in str(p)) == test]
                 for test in (True, True, False)]
        groups[object] = [g for g in split if g]
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
        crashed = [s for s in ("made", "onnx", "ort") if str(verdict.get(s) or "").startswith("!")]
        if crashed:
            self.crashes[f"{crashed[0]} {verdict[crashed[0]][1:]}"] += 1
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
        what, messages = found
        # Rules for a peer may ask for what we said, too.
        said = "" if what == "strict" or what == "silent" else f"\nours: {answer[1]}"
        rules = [explain(self.rules, side, job["kind"], message + said) for side, message in messages]
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
            keep = pathlib.Path(args.keep)
            keep.mkdir(parents=True, exist_ok=True)
            for path in pathlib.Path(job["path"]).parent.glob(pathlib.Path(job["path"]).stem + ".*"):
                shutil.copy(path, keep)


def one_line(text, width=200):
    return re.sub(r"\s+", " ", str(text))[:width]


def show(what, row):
    job, verdict, answer = row
    print(f"{what} {job['kind']} #{job['number']} {' '.join(verdict.get('made') or [])}\n"
          f"    onnx: {one_line(verdict['onnx'])}\n    ort: {one_line(verdict['ort'])}\n"
          f"    ours: {answer[0]} {one_line(answer[1])}\n    session: {one_line(answer[3])}")


def run(args, folder):
    rules = read_rules(RULES)
    tally = Tally(rules)
    bases = find_bases(args, folder)
    jobs = [{"kind": kind, "number": n, "seed": args.seed,
             "path": str(folder / f"{kind.replace(' ', '_')}_{n}.onnx")}
            for kind in mutate_models.KINDS if fnmatch.fnmatch(kind, args.kinds)
            for n in range(args.count)]
    disobeyed = sampled = 0
    for at in range(0, len(jobs), CHUNK):
        part = jobs[at:at + CHUNK]
        verdicts = judge_all(part, str(bases), args)
        answers = ours(args.program, [j["path"] for j in part])
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
    return tally, disobeyed, sampled


def report(args, tally, disobeyed, sampled):
    total = sum(tally.kinds.values())
    few = min(tally.kinds.values())
    print(f"{total} models of {len(tally.kinds)} kinds, at least {few} of each; seed {args.seed}")
    for name, count in sorted(tally.agree.items()):
        print(f"  {count:6} {name}")
    for name, count in sorted(tally.crashes.items()):
        print(f"  {count:6} a peer's crash judges nothing: {name}")
    if sampled:
        print(f"  {sampled:6} went through the tool, too: {sampled - disobeyed} with the same verdict")
    for rule in tally.rules:
        print(f"  {rule.count:6} rule {rule.name} ({rule.side}): {rule.reason}")
    for what, rules, row in tally.rows:
        if args.list and (what == args.list or rules and any(r and r.name == args.list for r in rules)):
            show(what, row)
    shown = collections.Counter()
    for what, row in tally.failures:
        shown[what] += 1
        if shown[what] <= args.show:
            show(f"not ok {what}", row)
    unused = [] if args.sample or args.kinds != "*" else [r for r in tally.rules if not r.count]
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
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", default="*")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--keep")
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
    if sys.argv[1:] == ["--work"]:
        work()
    else:
        main()
