"""onnx.checker and onnxruntime as judges of models, for check_models.py.

They work in child processes, which answer line by line: when one dies or hangs on a model, that is a crash of
theirs, and another child goes on behind it. What they said is kept by the bytes of a model (--cache).
"""
import hashlib
import importlib.metadata
import json
import os
import pathlib
import queue
import resource
import select
import subprocess
import sys
import threading

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import mutate_models  # noqa: E402

SECONDS = 60
MEMORY = 8 << 30


# ---- in the child

def peer_onnx(path):
    import onnx
    try:
        onnx.checker.check_model(path, full_check=True)
    except Exception as e:      # whatever it says is a refusal
        return f"{type(e).__name__}: {e}"
    return None


def peer_runtime(path):
    from onnx_runs import session
    try:
        session(path)
    except Exception as e:
        return f"{type(e).__name__}: {e}"
    return None


def recorded_inputs(base):
    """(name, type, value) of the first data set beside a model; a value that isn't there is None."""
    import onnx
    import onnx_runs
    import released_runs
    graph = onnx.load(base, load_external_data=False).graph
    constant = {t.name for t in graph.initializer}
    found = []
    for k, info in enumerate(i for i in graph.input if i.name not in constant):
        path = base.parent / "test_data_set_0" / f"input_{k}.pb"
        value = None
        if path.exists():
            value = released_runs.read_value(path, info.type)
        elif path.with_suffix(".json").exists():
            text = info.type.map_type.key_type == onnx.TensorProto.STRING
            value = onnx_runs.read_map(path.with_suffix(".json"), "string" if text else "int64")
        found.append((info.name, info.type, value))
    return found


def made_up(wanted):
    """A small value of the type that a session asks for."""
    import numpy as np
    import onnx
    name = wanted.type.removeprefix("tensor(").removesuffix(")")
    shape = [d if isinstance(d, int) and d >= 0 else 1 for d in wanted.shape]
    if name == "string":
        return np.full(shape, "a", object)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(onnx.TensorProto.DataType.Value(
        {"double": "DOUBLE", "float": "FLOAT"}.get(name, name.upper())))
    return np.random.default_rng(1).integers(0, 2, shape).astype(dtype)


def fits(wanted, value):
    """Would the session take the value? Shapes of tensors; it looks at nothing else first."""
    import numpy as np
    import onnx
    if not isinstance(value, np.ndarray) or not wanted.type.startswith("tensor("):
        return not isinstance(value, np.ndarray) and not wanted.type.startswith("tensor(")
    known = onnx.TensorProto.DataType.Name(onnx.helper.np_dtype_to_tensor_dtype(value.dtype)).lower()
    return wanted.type == f"tensor({known})" and len(wanted.shape) == value.ndim and all(
        not isinstance(d, int) or d < 0 or d == n for d, n in zip(wanted.shape, value.shape))


def feeds_for(session, recorded):
    """By name, else by place, what is recorded where it is of the type asked for; else made up."""
    import onnxruntime
    import released_runs
    inputs = session.get_inputs()
    by_name = {name: (kind, value) for name, kind, value in recorded}
    feeds = {}
    for i, wanted in enumerate(inputs):
        kind, value = by_name.get(wanted.name, (None, None))
        if kind is None and len(inputs) == len(recorded):
            _, kind, value = recorded[i]
        if kind is not None and value is None and wanted.type.startswith("optional"):
            feeds[wanted.name] = None
        elif value is not None and fits(wanted, value):
            feeds[wanted.name] = released_runs.fed(onnxruntime, value, kind)
        else:
            feeds[wanted.name] = made_up(wanted)
    return feeds


class NoEvidence(Exception):
    """The model from which the mutation started doesn't run on these inputs."""


def run_once(path, recorded):
    import onnxruntime
    from onnx_runs import session
    model = session(path)
    try:
        feeds = feeds_for(model, recorded)
    except Exception as e:      # a type that nobody can make up
        raise NoEvidence(f"no inputs: {type(e).__name__}: {e}") from e
    if any(isinstance(v, onnxruntime.OrtValue) for v in feeds.values()):
        feeds = {k: v if isinstance(v, onnxruntime.OrtValue) else
                 onnxruntime.OrtValue.ortvalue_from_numpy(v) for k, v in feeds.items()}
        model.run_with_ort_values(None, feeds)
    else:
        model.run(None, feeds)


def peer_run(path, base, sound):
    """None where onnxruntime runs the model; why it doesn't, while it runs the model's base."""
    base = pathlib.Path(base)
    recorded = recorded_inputs(base)
    try:
        if base not in sound:
            try:
                run_once(base, recorded)
            except Exception as e:
                raise NoEvidence(f"its base doesn't run: {type(e).__name__}: {e}") from e
            sound.add(base)
        run_once(path, recorded)
    except NoEvidence as e:
        return f"?{e}"
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


class Worker:
    """The child's side of a Peer: a job per line of stdin, lines of answers."""

    def __init__(self, answers):
        self.answers, self.bases, self.known, self.sound = answers, None, None, set()

    def say(self, name, answer):
        self.answers.write(json.dumps([name, answer]) + "\n")
        self.answers.flush()

    def make(self, job):
        """Writes the mutant; what was changed where, and the base."""
        if self.bases is None:
            self.bases = {o: [[pathlib.Path(p) for p in g] for g in groups] for o, groups in
                          json.loads(pathlib.Path(job["bases"]).read_text()).items()}
        mutant = mutate_models.mutate(job["seed"], job["kind"], job["number"], self.bases,
                                      pathlib.Path(job["path"]).with_suffix(".bin").name)
        mutant.write(job["path"])
        return mutant.place, str(mutant.base)

    def judge(self, job):
        self.known = read_cache(job["cache"]) if self.known is None else self.known
        place, base = self.make(job) if job["kind"] else (None, job["path"])
        key = digest(pathlib.Path(job["path"]))
        onnx, ort = self.known.get(key, (None, None))
        self.say("made", [key, place, base])
        self.say("onnx", onnx if key in self.known else peer_onnx(job["path"]))
        self.say("ort", ort if key in self.known else peer_runtime(job["path"]))


def work():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    worker = Worker(os.fdopen(os.dup(1), "w"))      # the peers write to stdout, too
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    import onnxruntime
    onnxruntime.set_default_logger_severity(4)
    for line in sys.stdin:
        job = json.loads(line)
        if "run" in job:
            worker.say("run", peer_run(job["path"], job["run"], worker.sound))
        else:
            worker.judge(job)


# ---- in the parent

class Peer:
    """A child process that judges models; a new one after a crash."""

    def __init__(self):
        self.child, self.buffer = None, b""

    def start(self):
        self.child = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE,
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

    def ask(self, job, names):
        """An answer for each of the names; "!" and what happened where the child didn't get so far."""
        answers, crash = {}, None
        if self.child is None:
            self.start()
        try:
            self.child.stdin.write((json.dumps(job) + "\n").encode())
            self.child.stdin.flush()
            for name in names:
                answers[name] = self.line()[1]
        except (EOFError, BrokenPipeError) as e:
            crash = str(e) or "died"
        for name in names:
            if name not in answers:
                answers[name], crash = f"!{crash}", "not asked"
        return answers

    def stop(self):
        if self.child:
            self.child.stdin.close()
            self.child.wait()


def crash_of(verdict):
    """The first answer that never came, "ort died"; None when all came."""
    return next((f"{name} {answer[1:]}" for name, answer in verdict.items()
                 if isinstance(answer, str) and answer.startswith("!")), None)


class Peers:
    """So many children, and what they have said before."""

    def __init__(self, cache, count):
        self.cache, self.known = pathlib.Path(cache), set(read_cache(cache))
        self.children = [Peer() for _ in range(count)]
        if not self.known:
            self.cache.parent.mkdir(parents=True, exist_ok=True)
            self.cache.write_text(peer_versions() + "\n")

    def ask(self, jobs, names):
        """Answers to the jobs in their order."""
        todo, results = queue.Queue(), [None] * len(jobs)
        for pair in enumerate(jobs):
            todo.put(pair)

        def run(peer):
            while True:
                try:
                    i, job = todo.get_nowait()
                except queue.Empty:
                    break
                results[i] = peer.ask(job, names)
        threads = [threading.Thread(target=run, args=(peer,)) for peer in self.children]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return results

    def judge(self, jobs, bases):
        """What the peers say of models, which are made first where a job has a kind: "onnx" and "ort" are
        None or a refusal, "made" is [digest, place of the mutation, base]."""
        jobs = [dict(job, bases=bases, cache=str(self.cache)) for job in jobs]
        results = self.ask(jobs, ("made", "onnx", "ort"))
        self.keep(results)
        return results

    def run(self, pairs):
        """Whether onnxruntime runs models, each given with its base: None, or why not; "?" and what else
        came between."""
        jobs = [{"path": path, "run": base} for path, base in pairs]
        return [answer["run"] for answer in self.ask(jobs, ("run",))]

    def keep(self, verdicts):
        """A crash isn't kept."""
        with self.cache.open("a") as f:
            for v in verdicts:
                if not crash_of(v) and v["made"][0] not in self.known:
                    self.known.add(v["made"][0])
                    f.write(json.dumps([v["made"][0], v["onnx"], v["ort"]]) + "\n")

    def stop(self):
        for peer in self.children:
            peer.stop()


if __name__ == "__main__":
    work()
