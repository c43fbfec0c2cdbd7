"""ONNX's node tests, and real models, with a provider that isn't built in: what it claims must run there, and give the expected values.

usage: check_plugin.py [--only GLOB] [--models DIR] [--known FILE] PROVIDER BIN CONFORMANCE

A test takes part if its model has an operator that the provider lists (ort-inspect --supports). ort-run
compares the results with the recorded ones, all that is claimed on the device (cost=off). Printed: for each
listed operator, in how many tests nodes of it ran there. An operator of the list that never did is a failure,
but for those that no node test has. --models: the folders of DIR with test data, too, within the bounds of their
meta.json; one that the CPU doesn't meet either (files of integers that were recorded elsewhere) is skipped.
--known lists tests in which the library under a provider is further away than the bound: each must still fail,
or leaves the list; but where the error is "up to NUMBER", which depends on the machine, it may be anything within that.
"""
import argparse
import collections
import fnmatch
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import onnx


def operators(model):
    """(domain, operator) of the main graph's nodes."""
    return {("" if n.domain in ("", "ai.onnx") else n.domain, n.op_type) for n in model.graph.node}


def known_failures(path, provider):
    """Test and the error that was measured, as the file of exceptions has them."""
    rows = {}
    for line in path.read_text().splitlines() if path else []:
        words = line.split(None, 2)
        if len(words) == 3 and words[0] == provider:
            rows[words[1]] = words[2]
    return rows


# Operators whose node tests all ask for outputs that models don't: these run with the first alone, too.
FIRST_OUTPUT = {"LayerNormalization"}


def first_output(folder, into):
    """A copy of a node test that asks for the first output alone; None where it does already."""
    model = onnx.load(folder / "model.onnx")
    nodes = model.graph.node
    if len(nodes) != 1 or nodes[0].op_type not in FIRST_OUTPUT or len(nodes[0].output) == 1:
        return None
    del nodes[0].output[1:], model.graph.output[1:]
    copy = into / f"{folder.name}_first_output"
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("output_[1-9]*.pb"))
    onnx.save(model, copy / "model.onnx")
    return copy


class Checks:
    def __init__(self, args):
        self.args = args
        # A provider that isn't built in is found where ORT_PROVIDER_PATH says.
        env = dict(os.environ, ORT_PROVIDER=f"{args.provider},cpu")
        report = json.loads(subprocess.run([args.bin / "ort-inspect", "--supports", "--json"], capture_output=True,
                                           text=True, check=True, env=env).stdout)
        self.listed = {("" if o["domain"] == "ai.onnx" else o["domain"], o["op_type"]) for o in report["operators"]
                       if args.provider in o["providers"]}
        self.known = known_failures(args.known, args.provider)
        self.most = {name: error.split()[2] for name, error in self.known.items() if error.startswith("up to ")}
        self.known = {name: error for name, error in self.known.items() if name not in self.most}
        self.ran, self.seen = collections.Counter(), collections.Counter()
        self.passed = self.failed = self.skipped = 0

    def run(self, name, path, data, level, bounds):
        bounds = ["--rtol", "0", "--atol", self.most[name]] if name in self.most else bounds

        def command(provider):
            return [self.args.bin / "ort-run", "--provider", provider, "--level", level, "-v", path, "-i", data,
                    "--expect", data, *bounds]
        run = subprocess.run(command(f"{self.args.provider}:cost=off,cpu"), capture_output=True, text=True)
        if run.returncode and bounds and subprocess.run(command("cpu"), capture_output=True).returncode:
            return 0, 0, "the CPU is further away, too"
        count = re.search(self.args.provider + r": (\d+) nodes", run.stderr)
        nodes = int(count[1]) if count else 0
        if run.returncode and nodes == 0 and count:
            nodes = -1
        return run.returncode, nodes, (run.stdout + run.stderr).strip()

    def judge(self, name, ops, status, nodes, text):
        if nodes <= 0 and not (status and "rovider" in text):
            self.skipped += 1
            return
        self.ran.update(ops if len(ops) == 1 else ())
        status = status or "goes on on cpu" in text  # the device failed, though the results are right
        reason = self.known.pop(name, None)
        lines = [line for line in text.splitlines() if re.search("FAIL|not ok|differ|goes on on cpu", line)]
        if status and reason is None:
            self.failed += 1
            print(f"not ok {name}: {(lines or text.splitlines())[-1]}")
        elif not status and reason is not None:
            self.failed += 1
            print(f"not ok {name}: within the bound, though {self.args.known.name} lists it")
        else:
            self.passed += 1

    def tests(self, folder, level):
        """Test data of one folder: name, operators of its model that are listed, path, data, level."""
        path = folder / "model.onnx"
        if not path.exists() or not fnmatch.fnmatch(folder.name, self.args.only):
            return []
        ops = operators(onnx.load(path, load_external_data=False)) & self.listed
        if not ops:
            return []
        self.seen.update(ops if len(ops) == 1 else ())  # of several, who ran isn't known
        bounds = []
        if (folder / "meta.json").exists():
            meta = json.loads((folder / "meta.json").read_text())
            bounds = ["--rtol", str(meta.get("rtol", 1e-3)), "--atol", str(meta.get("atol", 1e-5))]
        return [(folder.name, ops, path, data, level, bounds) for data in sorted(folder.glob("test_data_set_*"))]

    def count_fused(self, folder):
        """Operators that fusions make of a model, where the provider has them: no node test is alike."""
        done = subprocess.run([self.args.bin / "ort-inspect", folder / "model.onnx", "--partition", "--json",
                               "--provider", f"{self.args.provider}:cost=off,cpu"], capture_output=True, text=True)
        for node in json.loads(done.stdout)["nodes"] if done.returncode == 0 else []:
            if node["provider"] == self.args.provider and node["computed_by_runs"]:
                domain = "" if node["domain"] == "ai.onnx" else node["domain"]
                self.seen[domain, node["op_type"]] += 1
                self.ran[domain, node["op_type"]] += 1

    def all(self):
        args = self.args
        folders = sorted(args.conformance.glob("test_*"))
        folders += filter(None, (first_output(f, args.scratch) for f in folders if (f / "model.onnx").exists()))
        tests = [t for folder in folders for t in self.tests(folder, "0")]
        if args.models and args.models.is_dir():
            for folder in sorted(args.models.glob("*")):
                found = self.tests(folder, "3")
                tests += found
                if found:
                    self.count_fused(folder)
        with ThreadPoolExecutor(2) as pool:
            for test, got in zip(tests, pool.map(lambda t: self.run(t[0], *t[2:]), tests)):
                self.judge(test[0], test[1], *got)

    def summary(self):
        for op in sorted(self.listed):
            if self.seen[op] and not self.ran[op]:
                self.failed += 1
                print(f"not ok {op[0]}.{op[1]}: claimed, and ran nowhere but on the host")
        listed = sorted(self.listed)
        print(", ".join(f"{op[1]} {self.ran[op]} of {self.seen[op]}" for op in listed if self.seen[op]))
        print("no test has: " + ", ".join(op[1] for op in listed if not self.seen[op]))
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped")
        return self.failed != 0 or not self.passed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="*")
    parser.add_argument("--models", type=pathlib.Path)
    parser.add_argument("--known", type=pathlib.Path)
    parser.add_argument("provider")
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("conformance", type=pathlib.Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        args.scratch = pathlib.Path(scratch)
        checks = Checks(args)
        checks.all()
    return checks.summary()


if __name__ == "__main__":
    sys.exit(main())
