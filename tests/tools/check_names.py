#!/usr/bin/env python3
"""A name may only stand for its value: values of a rewritten model that have the name of one of the original
hold the same numbers, after every pass alone and after all of them.

usage: check_names.py [--only GLOB] [--levels] MODEL_DIR...

A MODEL_DIR is NAME.onnx files or folders with a model.onnx, and test_data_set_0 beside it where there is one
(else inputs are made up). Each model runs at level 0 and all its values are written (ort-run --dump); then the same
of what ort-optimize makes of it with each pass alone (--levels: not), at level 1, at level 2, and with --contrib;
and of a session at level 3. Values in bodies of control flow have names of their own and aren't looked at.

Floats may differ by what another order of rounding makes, integers in few places: a name that went astray differs
nearly everywhere.
"""
import argparse
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("ORT_BIN", ROOT / "build" / "bin"))
SHARE = 0.25  # of elements that may be off
FORMS = [("--level", "1"), ("--level", "2"), ("--level", "2", "--contrib")]


def tool(*command):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False,
                          timeout=300)


def passes():
    """Of a file; those of level 3 and 0 are never seen in one."""
    lines = tool(BIN / "ort-optimize", "--list-passes").stdout.splitlines()
    return [line.split()[1] for line in lines if line[:1] in "12"]


def dump(model, given, level, folder):
    """{name: array} of all values, or what went wrong."""
    said = tool(BIN / "ort-run", model, *given, "--level", level, "--dump", "*", "--dump-dir", folder,
                "--threads", 1, "-q", "-o", folder.with_suffix(".npz"))
    if said.returncode:
        return said.stderr.strip()
    index = json.loads((folder / "index.json").read_text())
    return {v["name"]: folder / v["file"] for v in index["values"]}


def differ(a, b):
    """How the contents of two .npy files differ, or ""."""
    if a.suffix != ".npy" or b.suffix != ".npy":
        return "" if a.suffix == b.suffix else "of another kind"
    x, y = np.load(a, allow_pickle=False), np.load(b, allow_pickle=False)
    if x.shape != y.shape:
        return f"{list(x.shape)} became {list(y.shape)}"
    if x.dtype.kind not in "fiub":
        return "" if np.array_equal(x, y) else "other contents"
    if x.dtype != y.dtype and (x.dtype.kind, y.dtype.kind) != ("f", "f"):
        return f"{x.dtype} became {y.dtype}"
    if x.size == 0:
        return ""
    x, y = x.astype(np.float64), y.astype(np.float64)
    finite = x[np.isfinite(x)]
    room = 0.02 * (np.abs(finite).max() if finite.size else 0)
    with np.errstate(invalid="ignore"):
        off = ~((np.abs(x - y) <= room) | (x == y) | (np.isnan(x) & np.isnan(y)))
    # One element in a small tensor may be a tie.
    return f"{int(off.sum())} of {x.size} elements differ" if off.sum() > max(1, SHARE * x.size) else ""


def astray(before, after):
    for name in before.keys() & after.keys():
        text = differ(before[name], after[name])
        if text:
            yield f"'{name}': {text}"


def rewritten(model, options, path):
    """Whether ort-optimize changed anything."""
    said = tool(BIN / "ort-optimize", model, *options, "--no-verify", "--json", "-q", "-o", path)
    if said.returncode:
        return said.stderr.strip()
    report = json.loads(said.stdout)
    return any(p["rewrites"] for p in report["passes"])


def check(model, name, forms):
    """[(what, problem)], values compared."""
    data = model.parent / "test_data_set_0"
    given = ["-i", data] if data.exists() else ["--random", 1]
    problems, compared = [], 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        before = dump(model, given, 0, folder / "before")
        if isinstance(before, str):
            return [("level 0", before)], 0
        for k, options in enumerate([*forms, None]):
            what, path, level = "session at level 3", model, 3
            if options:
                what, path, level = " ".join(options), folder / f"{k}.onnx", 0
                changed = rewritten(model, options, path)
                if isinstance(changed, str):
                    problems.append((what, changed))
                    continue
                if not changed:
                    continue
            after = dump(path, given, level, folder / f"after{k}")
            if isinstance(after, str):
                problems.append((what, after))
                continue
            compared += len(before.keys() & after.keys())
            problems += [(what, text) for text in astray(before, after)]
            tool("rm", "-rf", folder / f"after{k}", folder / f"{k}.onnx")
    return problems, compared


def models(folders):
    for folder in map(pathlib.Path, folders):
        for path in sorted(folder.glob("*/model.onnx")) + sorted(folder.glob("*.onnx")):
            yield path, path.parent.name if path.name == "model.onnx" else path.stem


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="*")
    parser.add_argument("--levels", action="store_true")
    parser.add_argument("folders", nargs="+")
    options = parser.parse_args()
    forms = FORMS + ([] if options.levels else
                     [("--passes", p, *more) for p in passes() for more in ((), ("--contrib",))])
    chosen = [(m, n) for m, n in models(options.folders) if fnmatch.fnmatch(n, options.only)]
    failed = total = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for (_, name), (problems, compared) in zip(
                chosen, pool.map(lambda c: check(*c, forms), chosen)):
            total += compared
            failed += bool(problems)
            for what, text in problems[:20]:
                print(f"not ok {name}, {what}: {text.splitlines()[0][:300]}")
    print(f"{total} values under the name that they had")
    print(f"{len(chosen) - failed} passed, {failed} failed, 0 skipped")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
