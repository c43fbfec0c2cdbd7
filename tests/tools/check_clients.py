#!/usr/bin/env python3
"""check_clients.py LIBRARY MODELS - programs from PyPI that were built on onnxruntime, unchanged, on the drop-in.

Each runs with onnxruntime and with LIBRARY in its place, by turns, and must print the same; beside it stand the
whole process's time and peak memory, theirs and ours. Prints "N passed, N failed, N skipped".
"""
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
VENV = ROOT / "build/venv-clients"
PYTHON = str(VENV / "bin/python")
LIBRARY, MODELS = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
THROUGH_PYTHON = ("magika_files", "rapidocr_lines", "ddddocr_letters", "nudenet_boxes", "whisper_speech")
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


def main():
    global skipped
    python_programs()
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
