"""ONNX's node tests with another provider: what it claims must run there, and give the expected values.

usage: check_provider.py [--only GLOB] PROVIDER BIN CONFORMANCE

A test takes part if its model has an operator that the provider lists (ort-inspect --supports). ort-run
compares the results with the recorded ones, all that is claimed on the device (cost=off). Printed: for each
listed operator, in how many tests nodes of it ran there. An operator of the list that never did is a failure,
but for those that no node test has.
"""
import argparse
import collections
import fnmatch
import json
import pathlib
import re
import subprocess
import sys

import onnx


def operators(model):
    """(domain, operator) of the main graph's nodes."""
    return {("" if n.domain in ("", "ai.onnx") else n.domain, n.op_type) for n in model.graph.node}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="*")
    parser.add_argument("provider")
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("conformance", type=pathlib.Path)
    args = parser.parse_args()
    report = json.loads(subprocess.run([args.bin / "ort-inspect", "--supports", "--json"], capture_output=True,
                                       text=True, check=True).stdout)
    listed = {("" if o["domain"] == "ai.onnx" else o["domain"], o["op_type"]) for o in report["operators"]
              if args.provider in o["providers"]}
    ran, seen = collections.Counter(), collections.Counter()
    passed = failed = skipped = 0
    for folder in sorted(args.conformance.glob("test_*")):
        path = folder / "model.onnx"
        if not path.exists() or not fnmatch.fnmatch(folder.name, args.only):
            continue
        ops = operators(onnx.load(path)) & listed
        if not ops:
            continue
        seen.update(ops)
        for data in sorted(folder.glob("test_data_set_*")):
            run = subprocess.run([args.bin / "ort-run", "--provider", f"{args.provider}:cost=off,cpu", "--level", "0",
                                  "-v", path, "-i", data, "--expect", data], capture_output=True, text=True)
            count = re.search(args.provider + r": (\d+) nodes", run.stderr)
            if not count or count[1] == "0":
                skipped += 1
                continue
            ran.update(ops)
            if run.returncode:
                failed += 1
                print(f"not ok {folder.name}: {(run.stdout + run.stderr).strip().splitlines()[-1]}")
            else:
                passed += 1
    for op in sorted(listed):
        if seen[op] and not ran[op]:
            failed += 1
            print(f"not ok {op[0]}.{op[1]}: claimed, and ran nowhere but on the host")
    print(", ".join(f"{op[1]} {ran[op]} of {seen[op]}" for op in sorted(listed) if seen[op]))
    print("no node test has: " + ", ".join(op[1] for op in sorted(listed) if not seen[op]))
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return failed != 0 or not passed


if __name__ == "__main__":
    sys.exit(main())
