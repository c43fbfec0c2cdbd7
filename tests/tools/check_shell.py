#!/usr/bin/env python3
"""ONNX's node tests from the shell, a process per set: ort-run MODEL -i SET --expect SET.

usage: check_shell.py ORT_RUN FOLDER RULES [GLOB]

RULES lists the tests that can't hold, with the rule that says why (tests/onnx/shell.txt). Prints what fails, and a
line of RULES that is wrong: its test holds, or isn't there, or its rule isn't explained. Closes with
"N passed, N failed, N left to rules"."""
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys


def run(tool, folder, data):
    model, meta = folder / "model.onnx", json.loads((folder / "meta.json").read_text())
    draw = meta.get("random")  # the state of numpy's generator that gave what is expected
    seed = ["--seed", f"{draw['seed']}:{draw['skip']}"] if draw else []
    try:
        done = subprocess.run([tool, model, "-i", data, "--expect", data, *seed], capture_output=True,
                              text=True, errors="replace", timeout=60)
    except subprocess.TimeoutExpired:
        return "no end within 60 s"
    if done.returncode == 0 and "ok " in done.stdout:
        return None
    return f"status {done.returncode}: {(done.stderr or done.stdout).strip()[:200]}"


def read_rules(path):
    text = pathlib.Path(path).read_text()
    explained = set(re.findall(r"^#   ([a-z-]+): ", text, re.M))
    rules = dict(line.split() for line in text.splitlines() if line and not line.startswith("#"))
    return rules, [f"{name}: rule '{rule}' isn't explained" for name, rule in rules.items()
                   if rule not in explained]


def main():
    tool, root, rules_path = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    pattern = sys.argv[4] if len(sys.argv) > 4 else "*"
    rules, wrong = read_rules(rules_path)
    sets = [(f, d) for f in sorted(root.glob(pattern)) for d in sorted(f.glob("test_data_set_*"))]
    failed, left, held = [], 0, set(rules)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for (folder, data), why in zip(sets, pool.map(lambda s: run(tool, *s), sets)):
            if why and folder.name in rules:
                left += 1
                held.discard(folder.name)
            elif why:
                failed.append(f"{folder.name}/{data.name}: {why}")
    seen = {folder.name for folder, _ in sets}
    wrong += [f"{name}: holds, so its line in {rules_path} is wrong" for name in held & seen]
    if pattern == "*":
        wrong += [f"{name}: {rules_path} lists it, and there is no such test" for name in held - seen]
    for line in failed + sorted(wrong):
        print("not ok", line)
    bad = len(failed) + len(wrong)
    print(f"{len(sets) - len(failed) - left} passed, {bad} failed, {left} left to rules")
    return 1 if bad or not sets else 0


sys.exit(main())
