#!/usr/bin/env python3
"""check_shell.py ORT_RUN FOLDER [GLOB]: ONNX's node tests from the shell, a process per set:
ort-run MODEL -i SET --expect SET. Prints what fails, closes with "N passed, N failed, 0 skipped"."""
import concurrent.futures
import os
import pathlib
import subprocess
import sys


def run(tool, folder, data):
    model = folder / "model.onnx"
    try:
        done = subprocess.run([tool, model, "-i", data, "--expect", data], capture_output=True,
                              text=True, errors="replace", timeout=60)
    except subprocess.TimeoutExpired:
        return "no end within 60 s"
    if done.returncode == 0 and "ok " in done.stdout:
        return None
    return f"status {done.returncode}: {(done.stderr or done.stdout).strip()[:200]}"


def main():
    tool, root = sys.argv[1], pathlib.Path(sys.argv[2])
    pattern = sys.argv[3] if len(sys.argv) > 3 else "*"
    sets = [(f, d) for f in sorted(root.glob(pattern)) for d in sorted(f.glob("test_data_set_*"))]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for (folder, data), why in zip(sets, pool.map(lambda s: run(tool, *s), sets)):
            if why:
                failed += 1
                print(f"not ok {folder.name}/{data.name}: {why}")
    print(f"{len(sets) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not sets else 0


sys.exit(main())
