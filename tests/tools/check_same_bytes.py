#!/usr/bin/env python3
"""Files of ort-quantize are the same bytes for every kernel tier and number of threads.

usage: check_same_bytes.py [--planted TOOL] TOOLS MODELS

Each way to write a file (ROWS) runs with every --isa of this machine on 2 threads, its least and its best on 1 and 3 too,
on two convolutional nets, one of which ends in products. --planted: ort-quantize linked with tests/planted/own_tier.c, whose
float runs take the tier that the environment says. By common256, which is what machines without AVX-512 run, files are the
same; by another machine's best the files of what looks at samples have to differ, or this check would see nothing. Exit
status 1 where something differs, or where the planted fault doesn't.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SAMPLES = "--random 7 --samples 4"
NETS = {"digits.onnx": "hidden", "upscale.onnx": "conv3"}  # a node each that an assignment leaves in halves
# name, options, does a float run decide; {ranges}: the file that this row before wrote; {assignment}: types by node as
# --auto writes them.
ROWS = [
    ("dynamic", "dynamic {net} --small", False),
    ("dynamic-conv", "dynamic {net} --small --convolutions --include Conv*", False),
    ("nearest", "weights {net}", False),
    ("nearest-2", "weights {net} --bits 2 --block-size 16 --asymmetric-weights --form qdq", False),
    ("hqq", "weights {net} --method hqq", False),
    ("gptq", f"weights {{net}} --method gptq {SAMPLES}", True),
    ("gptq-ordered", f"weights {{net}} --method gptq --ordered {SAMPLES}", True),
    ("awq", f"weights {{net}} --method awq {SAMPLES}", True),
    ("ranges", f"calibrate {{net}} {SAMPLES}", True),
    ("ranges-even", f"calibrate {{net}} --equalize {SAMPLES}", True),
    ("ranged", "static {net} --ranges {ranges}", False),
    ("ranged-16", "static {net} --ranges {ranges} --activation-type uint16 --observer percentile", False),
    ("assigned", "static {net} --ranges {ranges} --overrides {assignment}", False),
    ("ranged-even", "static {net} --ranges {ranges-even} --equalize", False),
    ("static", f"static {{net}} {SAMPLES}", True),
    ("static-channels", f"static {{net}} {SAMPLES} --form qoperator --symmetric --observer entropy", True),
    ("equalize", f"static {{net}} {SAMPLES} --equalize", True),
    ("smooth", f"static {{net}} {SAMPLES} --smooth --alpha 0.6", True),
    ("effort", f"static {{net}} {SAMPLES} --effort", True),
    ("adaround", f"static {{net}} {SAMPLES} --adaround --bias-correction", True),
]


def tiers(tools):
    said = subprocess.run([tools / "ort-run", "--isa", "?", "x.onnx", "--random", "1"], capture_output=True, text=True).stderr
    return said.split("has: ")[1].strip().split(", ")


def assignment(net):
    rows = [{"node": "conv1", "weights": "int4"}, {"node": "conv2", "type": "uint16", "weights": "int8"},
            {"node": NETS[net], "type": "float16"}]
    return {"schema": "ort-overrides/1", "overrides": rows}


def write(tool, row, words, folder, isa, threads, environment=None):
    """The bytes that a row writes."""
    name, options, _ = row
    path = folder / f"{name}.{'json' if options.startswith('calibrate') else 'onnx'}"
    command = [tool, *options.format(**words).split(), "--isa", isa, "--threads", str(threads), "-q", "--force",
               "-o", path]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **(environment or {})})
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: status {done.returncode}: {done.stderr}")
    return path.read_bytes(), path


def check_row(tool, row, words, folder, machine):
    first, path = write(tool, row, words, folder, machine[0], 1)
    words[row[0]] = path.rename(path.with_name(f"first-{path.name}"))
    runs = [(isa, threads) for isa in machine for threads in (1, 2, 3)
            if threads == 2 or isa in (machine[0], machine[-1])]
    other = [f"{isa} x {threads}" for isa, threads in runs[1:] if write(tool, row, words, folder, isa, threads)[0] != first]
    return f"differs from {machine[0]} x 1: {', '.join(other)}" if other else None


def check_planted(tool, row, words, folder, machine):
    """Float runs that decide leave a trace of their tier; where none decides, files stay the same."""
    made = {write(tool, row, words, folder, machine[0], 1, {"OWN_TIER": isa})[0] for isa in ("scalar", machine[-1])}
    if row[2] == (len(made) == 2):
        return None
    return "the planted fault isn't seen" if row[2] else "a float run decides"


def check_narrow(tool, row, words, folder, machine):
    """What a machine without AVX-512 writes."""
    if "avx2" not in machine:
        return None
    same = write(tool, row, words, folder, "avx2", 2, {"OWN_TIER": "common256"})[0] == words[row[0]].read_bytes()
    return None if same else "differs on 256 bits"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--planted", type=pathlib.Path)
    parser.add_argument("tools", type=pathlib.Path)
    parser.add_argument("models", type=pathlib.Path)
    options = parser.parse_args()
    machine = tiers(options.tools)
    failed = passed = 0
    for net in NETS:
        with tempfile.TemporaryDirectory() as own:
            words = {"net": options.models / net, "assignment": pathlib.Path(own) / "assignment.json"}
            words["assignment"].write_text(json.dumps(assignment(net)))
            for row in ROWS:
                found = {"": check_row(options.tools / "ort-quantize", row, words, pathlib.Path(own), machine)}
                if options.planted:
                    found["planted: "] = check_planted(options.planted, row, words, pathlib.Path(own), machine)
                    found["narrow: "] = check_narrow(options.planted, row, words, pathlib.Path(own), machine)
                for which, wrong in found.items():
                    failed += wrong is not None
                    passed += wrong is None
                    if wrong:
                        print(f"not ok {net} {row[0]}: {which}{wrong}", flush=True)
    print(f"{passed} passed, {failed} failed: tiers {', '.join(machine)}")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
