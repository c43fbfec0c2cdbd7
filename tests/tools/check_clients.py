#!/usr/bin/env python3
"""check_clients.py LIBRARY MODELS - programs from PyPI that were built on onnxruntime, unchanged, on the drop-in.

Each runs with onnxruntime and with LIBRARY in its place, by turns, and must print the same; beside it stand the
whole process's time and peak memory, theirs and ours. Prints "N passed, N failed, N skipped".
"""
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
VENV = ROOT / "build/venv-clients"
PYTHON = str(VENV / "bin/python")
LIBRARY, MODELS = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
THROUGH_PYTHON = ("magika_files", "rapidocr_lines", "ddddocr_letters", "nudenet_boxes", "whisper_speech", "swift_pitch",
                  "speech_quality", "page_direction", "slider_gap", "arabic_vowels", "extensions_text")
ROUNDS = 3
passed = failed = skipped = 0


def measure(command, **variables):
    """(what it printed, seconds, KiB) of the whole process."""
    child = "import resource, subprocess, sys; p = subprocess.run(sys.argv[1:]); " \
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr); sys.exit(p.returncode)"
    begin = time.monotonic()
    run = subprocess.run([sys.executable, "-c", child, *command], capture_output=True, text=True, timeout=300,
                         env=os.environ | variables, cwd=tempfile.gettempdir())
    best = time.monotonic() - begin
    memory = int(run.stderr.split()[-1])
    if run.returncode:
        return f"exit {run.returncode}: {run.stderr[-600:]}", best, memory
    return run.stdout, best, memory


def compare(name, theirs, ours):
    global passed, failed
    rounds = [(measure(theirs[0], **theirs[1]), measure(ours[0], **ours[1])) for _ in range(ROUNDS)]
    (a, *_), (b, *_) = rounds[0]
    good = a == b and a and not a.startswith("exit")
    passed, failed = passed + bool(good), failed + (not good)
    times = [min(r[k][1] for r in rounds) for k in (0, 1)]
    memory = [min(r[k][2] for r in rounds) // 1024 for k in (0, 1)]
    print(f"{'ok' if good else 'FAIL'} {name}: {times[0]:.2f} s, here {times[1]:.2f}; {memory[0]} MB, here {memory[1]}")
    if not good:
        lines = [(x, y) for x, y in zip(a.splitlines() or [""], b.splitlines() or [""]) if x != y]
        print("    theirs %.300s\n    ours   %.300s" % (lines[0] if lines else (a[-300:], b[-300:])))


def python_programs():
    for name in THROUGH_PYTHON:
        program = [str(ROOT / f"tests/clients/{name}.py"), str(ROOT)]
        compare(name, ([PYTHON, *program], {}),
                ([PYTHON, "-m", "ort_tools.as_onnxruntime", *program], {"PYTHONPATH": str(ROOT / "python"),
                                                                       "ORT_TOOLS_LIBRARY": str(LIBRARY)}))


def with_library(folder, *links):
    """A folder in which LIBRARY has these names."""
    for link in links:
        path = pathlib.Path(folder) / link
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(LIBRARY)
    return folder


def sherpa(folder):
    global skipped
    tool = VENV / "bin/sherpa-onnx-vad"
    core = next(VENV.glob("lib/python3*/site-packages/sherpa_onnx/lib"), None)
    speech = MODELS / "silero_vad/speech.wav"
    if not tool.exists() or not core or not speech.exists():
        skipped += 1
        print("skip sherpa-onnx-vad: the program or its model isn't here")
        return
    swapped = with_library(folder, "libonnxruntime.so")
    sound = pathlib.Path(folder) / "out.wav"
    command = ["sh", "-c", f"'{tool}' --silero-vad-model='{MODELS}/silero_vad/model.onnx' '{speech}' '{sound}' 2>&1 | "
               f"grep -e ' -- ' -e onnxruntime; cksum < '{sound}'"]
    compare("sherpa-onnx-vad", (command, {"LD_LIBRARY_PATH": str(core)}), (command, {"LD_LIBRARY_PATH": f"{swapped}:{core}"}))


def genai(folder):
    stub = pathlib.Path(folder) / "onnxruntime"
    with_library(stub / "capi", "libonnxruntime.so.1")
    (stub / "__init__.py").touch()
    for name in ("llama_byte_2m_trained", "llama_byte_2m_trained_int4_matmulnbits"):
        command = [PYTHON, str(ROOT / "tests/clients/genai_text.py"), str(ROOT), str(MODELS / name)]
        compare(f"onnxruntime-genai {name}", (command, {}), (command, {"PYTHONPATH": str(folder)}))


def ortpy(folder):
    """It is bound to 1.23.2, whose symbols onnxruntime's newest library doesn't have: here alone."""
    global passed, failed
    command = [PYTHON, str(ROOT / "tests/clients/ortpy_models.py"), str(ROOT), str(MODELS)]
    said, seconds, memory = measure(command, LD_LIBRARY_PATH=str(with_library(folder, "libonnxruntime.so.1")))
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
    with tempfile.TemporaryDirectory() as folder:
        skl2onnx(folder)
    if MODELS.is_dir():
        for check in (sherpa, genai, ortpy):
            with tempfile.TemporaryDirectory() as folder:
                check(folder)
    else:
        skipped += 3
        print(f"skip sherpa-onnx-vad, onnxruntime-genai, ortpy: {MODELS} isn't here")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return failed != 0


sys.exit(main())
