#!/usr/bin/env python3
"""check_clients.py LIBRARY READY MODELS [--gates] [--only GLOB] - programs from PyPI that were built on onnxruntime,
unchanged, on the drop-in.

Each runs with onnxruntime and with LIBRARY in its place, by turns, and must print the same; beside it stand the
whole process's time, when its first session was ready, peak memory and processor time, theirs and ours: medians of the
rounds. READY (tests/abi/ready.c) stands before the library of programs that aren't Python and tells when that was, and
that it is the one which was meant.
--gates: a program that isn't ahead in the first three fails. Ahead is who is so in the median of the rounds' ratios, with
the whole interval in which the median lies (95 of 100 times). Rounds, each of both and beginning with another one, go on
until that is decided either way for all three, at most MOST: a machine on which others work needs more of them, and
decides the same.
Prints "N passed, N failed, N skipped".
"""
import fnmatch
import hashlib
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
VENV = ROOT / "build/venv-clients"
PYTHON = str(VENV / "bin/python")
LIBRARY, READY, MODELS = (pathlib.Path(path).resolve() for path in sys.argv[1:4])
GATES = "--gates" in sys.argv
ONLY = sys.argv[sys.argv.index("--only") + 1] if "--only" in sys.argv else "*"
THROUGH_PYTHON = ("magika_files", "rapidocr_lines", "ddddocr_letters", "nudenet_boxes", "whisper_speech", "swift_pitch",
                  "speech_quality", "page_direction", "slider_gap", "arabic_vowels", "extensions_text")
ROUNDS, MOST = (7, 41) if GATES else (3, 3)
WHAT = "whole", "start", "peak", "processor"
GATED = 3  # of these
NEAR = 1e-5  # numbers that a program prints, where it prints any
passed = failed = skipped = 0


def measure(command, **variables):
    """(what it printed, seconds, seconds until the first session is ready or None, KiB, processor seconds) of the whole
    process."""
    child = "import resource, subprocess, sys; p = subprocess.run(sys.argv[1:]); " \
            "u = resource.getrusage(resource.RUSAGE_CHILDREN); " \
            "print(u.ru_maxrss, u.ru_utime + u.ru_stime, file=sys.stderr); sys.exit(p.returncode)"
    with tempfile.TemporaryDirectory() as folder:
        ready = pathlib.Path(folder) / "ready"
        begin = time.monotonic()
        run = subprocess.run([sys.executable, "-c", child, *command], capture_output=True, text=True, timeout=300,
                             env=os.environ | variables | {"READY_FILE": str(ready)}, cwd=tempfile.gettempdir())
        whole = time.monotonic() - begin
        start = float(ready.read_text()) - begin if ready.exists() else None
    memory, busy = run.stderr.split()[-2:]
    said = f"exit {run.returncode}: {run.stderr[-600:]}" if run.returncode else run.stdout
    return said, whole, start, int(memory), float(busy)


def is_near(a, b):
    """The same text, but for numbers that differ by roundings."""
    x, y = a.split(), b.split()
    try:
        return len(x) == len(y) and all(p == q or abs(float(p) - float(q)) <= NEAR for p, q in zip(x, y))
    except ValueError:
        return False


def one_round(number, theirs, ours):
    """What both measure, theirs first; who begins changes."""
    sides = [None, None]
    for side in ((0, 1), (1, 0))[number % 2]:
        command, variables = (theirs, ours)[side]
        sides[side] = measure(command, **variables)
    return sides


def ratios(rounds, k):
    """The median of ours over theirs, and the interval that it lies in."""
    found = sorted(ours[k] / theirs[k] for theirs, ours in rounds)
    aside = max(0, int(len(found) / 2 - 0.98 * len(found) ** 0.5))
    return statistics.median(found), found[aside], found[-1 - aside]


def undecided(rounds):
    return any(low < 1 <= high for _, low, high in (ratios(rounds, k) for k in range(1, GATED + 1)))


def describe(rounds, k):
    """What both take, and the ratio."""
    theirs, ours = (statistics.median(r[side][k] for r in rounds) for side in (0, 1))
    middle, low, high = ratios(rounds, k)
    shown = f"{theirs / 1024:.0f} MB, here {ours / 1024:.0f}" if WHAT[k - 1] == "peak" else f"{theirs:.2f} s, here {ours:.2f}"
    return f"{WHAT[k - 1]} {shown} ({middle:.2f}" + (f", {low:.2f} to {high:.2f})" if GATES else ")")


def compare(name, theirs, ours):
    global passed, failed
    if not fnmatch.fnmatch(name, ONLY):
        return
    rounds = [one_round(0, theirs, ours)]
    (a, *_), (b, *_) = rounds[0]
    good = is_near(a, b) and a and not a.startswith("exit")
    while good and (len(rounds) < ROUNDS or (len(rounds) < MOST and undecided(rounds))):
        rounds.append(one_round(len(rounds), theirs, ours))
        if any(side[0].startswith("exit") or side[2] is None for side in rounds[-1]):
            break
    if good and any(side[2] is None for r in rounds for side in r):
        good, b = False, "no session was made through the library that was meant"
    if good and any(not is_near(a, side[0]) for r in rounds for side in r):
        good, b = False, "a later round printed something else"
    shown = [describe(rounds, k) for k in range(1, len(WHAT) + 1)] if good else ()
    behind = [WHAT[k - 1] for k in range(1, GATED + 1) if good and ratios(rounds, k)[2] >= 1]
    if GATES and behind:
        good, b = False, f"not ahead in {' and '.join(behind)}"
    passed, failed = passed + bool(good), failed + (not good)
    print(f"{'ok' if good else 'FAIL'} {name}: {'; '.join(shown)}; {len(rounds)} rounds", flush=True)
    if not good:
        lines = [(x, y) for x, y in zip(a.splitlines() or [""], b.splitlines() or [""]) if x != y]
        print("    theirs %.300s\n    ours   %.300s" % (lines[0] if lines else (a[-300:], b[-300:])))


def python_programs():
    for name in THROUGH_PYTHON:
        program = [str(ROOT / "tests/tools/first_session.py"), str(ROOT / f"tests/clients/{name}.py"), str(ROOT)]
        compare(name, ([PYTHON, *program], {}),
                ([PYTHON, "-m", "ort_tools.as_onnxruntime", *program], {"PYTHONPATH": str(ROOT / "python"),
                                                                       "ORT_TOOLS_LIBRARY": str(LIBRARY)}))


def with_library(folder, link, library):
    """A folder in which the library has this name."""
    path = pathlib.Path(folder) / link
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(library)
    return folder


def wheels_library():
    """The library that onnxruntime's wheel carries."""
    return next(VENV.glob("lib/python3*/site-packages/onnxruntime/capi/libonnxruntime.so.*"))


def sherpa(folder):
    global skipped
    tool = VENV / "bin/sherpa-onnx-vad"
    core = next(VENV.glob("lib/python3*/site-packages/sherpa_onnx/lib"), None)
    speech = MODELS / "silero_vad/speech.wav"
    if not tool.exists() or not core or not speech.exists():
        skipped += 1
        print("skip sherpa-onnx-vad: the program or its model isn't here")
        return
    # Its DT_RPATH, which comes before LD_LIBRARY_PATH, is told from where it lies: a copy finds nothing by it.
    copy = pathlib.Path(folder) / "program/bin/sherpa-onnx-vad"
    copy.parent.mkdir(parents=True)
    shutil.copy(tool, copy)
    swapped = with_library(folder, "libonnxruntime.so", READY)
    sound = pathlib.Path(folder) / "out.wav"
    command = ["sh", "-c", f"'{copy}' --silero-vad-model='{MODELS}/silero_vad/model.onnx' '{speech}' '{sound}' 2>&1 | "
               f"grep -e ' -- ' -e onnxruntime; cksum < '{sound}'"]
    paths = {"LD_LIBRARY_PATH": f"{swapped}:{core}"}
    compare("sherpa-onnx-vad", (command, paths | {"READY_LIBRARY": str(core / "libonnxruntime.so")}),
            (command, paths | {"READY_LIBRARY": str(LIBRARY)}))


def genai(folder):
    """Where weights stand behind DequantizeLinear, onnxruntime multiplies in 8 bits an element unless it is told not to,
    which is another model: the text forks where its logits are 0.2 off. At level 1 it computes what the file says."""
    stub = pathlib.Path(folder) / "onnxruntime"
    with_library(stub / "capi", "libonnxruntime.so.1", READY)
    (stub / "__init__.py").touch()
    for name, *entries in (("llama_byte_2m_trained",), ("llama_byte_2m_trained_int4_matmulnbits",),
                           ("llama_byte_2m_trained_int4_qdq21", "session.qdq_matmulnbits_accuracy_level=1")):
        command = [PYTHON, str(ROOT / "tests/clients/genai_text.py"), str(ROOT), str(MODELS / name), *entries]
        compare(f"onnxruntime-genai {name}", *((command, {"PYTHONPATH": str(folder), "READY_LIBRARY": str(library)})
                                              for library in (wheels_library(), LIBRARY)))


def embroider(folder):
    """Rust: the crate `ort`, which opens the library that a variable names."""
    global skipped
    if not next(VENV.glob("lib/python3*/site-packages/embroider"), None):
        skipped += 1
        print("skip embroider: it isn't installed")
        return
    command = [PYTHON, str(ROOT / "tests/clients/embroider_vectors.py"), str(ROOT), str(folder)]
    subprocess.run([*command, "make"], check=True)
    compare("embroider", *((command, {"ORT_DYLIB_PATH": str(READY), "READY_LIBRARY": str(library)})
                           for library in (wheels_library(), LIBRARY)))


def ortpy(folder):
    """It is bound to 1.23.2, whose symbols onnxruntime's newest library doesn't have: here alone."""
    global passed, failed
    command = [PYTHON, str(ROOT / "tests/clients/ortpy_models.py"), str(ROOT), str(MODELS)]
    swapped = with_library(folder, "libonnxruntime.so.1", LIBRARY)
    said, seconds, _, memory, _ = measure(command, LD_LIBRARY_PATH=str(swapped))
    good = said.endswith("models fit\n") and said.count("\n") == 1
    passed, failed = passed + good, failed + (not good)
    print(f"{'ok' if good else 'FAIL'} ortpy: {said[-400:].strip()}; {seconds:.2f} s, {memory // 1024} MB")


# skl2onnx's own tests: the source archive of the version that is installed, and files of one kind of model each.
SKL2ONNX = "skl2onnx-1.20.0.tar.gz", "c74ea827d92ba186fe659695e8fc989cd97bfc320edce3d32b9936a5878da10a"
SKL2ONNX_TESTS = ("decision_tree_converters", "k_means_converter", "scaler_converter", "one_hot_encoder_converter",
                  "tfidf_transformer_converter", "count_vectorizer_converter", "mlp_converter", "naive_bayes_converter",
                  "label_encoder_converter", "imputer_converter", "pca_converter", "normalizer_converter", "text",
                  "isolation_forest", "svm_converters", "nearest_neighbour_converter", "gaussian_mixture_converter")


def skl2onnx_sources(folder):
    """The folder of its tests; None where PyPI can't be reached."""
    name, digest = SKL2ONNX
    kept = ROOT / "build/clients" / name
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([PYTHON, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", kept.parent,
                        name.replace(".tar.gz", "").replace("x-", "x==")], check=False)
    if not kept.exists():
        return None
    if hashlib.sha256(kept.read_bytes()).hexdigest() != digest:
        raise SystemExit(f"{kept}: isn't the archive that was published")
    shutil.unpack_archive(kept, folder, filter="data")
    return next(pathlib.Path(folder).glob("*/tests"))


def outcomes(command, tests, **variables):
    """{test: did it pass}, seconds."""
    report = tests / "report.xml"
    begin = time.monotonic()
    run = subprocess.run([*command, "-q", "-p", "no:warnings", "-p", "no:cacheprovider", f"--junitxml={report}",
                          *(f"test_sklearn_{name}.py" for name in SKL2ONNX_TESTS)], cwd=tests, capture_output=True, text=True,
                         timeout=1200, env=os.environ | variables, check=False)
    if not report.exists():
        return {}, run.stdout[-400:] + run.stderr[-400:]
    found = {}
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        bad = any(part.tag in ("failure", "error") for part in case)
        key = f"{case.get('classname')}.{case.get('name')}"
        found[key] = found.get(key, True) and not bad
    report.unlink()
    return found, time.monotonic() - begin


def skl2onnx(folder):
    """Whatever of its tests passes on onnxruntime passes here."""
    global passed, failed, skipped
    tests = skl2onnx_sources(folder)
    if tests is None:
        skipped += 1
        print("skip skl2onnx's tests: PyPI can't be reached")
        return
    theirs, seconds = outcomes([PYTHON, "-m", "pytest"], tests)
    ours, here = outcomes([PYTHON, "-m", "ort_tools.as_onnxruntime", "-m", "pytest"], tests,
                          PYTHONPATH=str(ROOT / "python"), ORT_TOOLS_LIBRARY=str(LIBRARY))
    lost = [name for name, good in theirs.items() if good and not ours.get(name)]
    good = sum(theirs.values()) > len(theirs) / 2 and not lost
    passed, failed = passed + bool(good), failed + (not good)
    print(f"{'ok' if good else 'FAIL'} skl2onnx: {sum(theirs.values())} of {len(theirs)} tests pass, here {sum(ours.values())}; "
          + (f"{seconds:.0f} s, here {here:.0f}" if theirs and ours else f"{seconds} {here}"))
    for name in lost[:10]:
        print(f"    {name} fails here alone")


def main():
    global skipped
    python_programs()
    own = [embroider] if GATES or ONLY != "*" else [embroider, skl2onnx]
    of_models = [sherpa, genai] if GATES or ONLY != "*" else [sherpa, genai, ortpy]
    for check in own + (of_models if MODELS.is_dir() else []):
        with tempfile.TemporaryDirectory() as folder:
            check(folder)
    if not MODELS.is_dir():
        skipped += 3
        print(f"skip sherpa-onnx-vad, onnxruntime-genai, ortpy: {MODELS} isn't here")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return failed != 0


sys.exit(main())
