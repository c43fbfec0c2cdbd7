#!/usr/bin/env python3
"""Run the tools over small models with extreme attributes and values, and hold them to their limits.

usage: extremes.py BIN CASES... [--seed N] [--count N] [--only GLOB] [--keep DIR]

CASES are folders of conformance cases (a model, test_data_set_0). Of each case come models in which
one attribute has an extreme value, or one small input, which is a constant of the model then, so
that inference and folding compute with it. Each runs through ort-inspect --check, ort-optimize and
ort-run under --max-memory and --timeout, and through --check and ort-optimize without verification
(which runs models) without limits, where FREE_BYTES holds for files below 1 MB. It fails when a tool
dies of a signal, takes longer than LONGEST_S of the clock and of a processor, or more memory than the
limit and SLACK_BYTES; --keep saves those models.
"""
import argparse
import fnmatch
import os
import pathlib
import random
import signal
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import numpy_helper

import draws

TIMEOUT_S, MEMORY = 2, 100 << 20
SLACK_BYTES, FREE_BYTES, LONGEST_S = 64 << 20, 1 << 30, 10
SIZES = [0, 1, 2, -1, 3, 255, 4097, 1 << 20, 100_000_007, (1 << 31) - 1, 1 << 31, 1 << 40, 1 << 62,
         (1 << 63) - 1, -(1 << 31), -(1 << 63)]
REALS = [0.0, -1.0, 1e-38, 1e9, 1e38, float("inf"), float("-inf"), float("nan")]


def change_attribute(model, draw):
    nodes = [n for n in model.graph.node if n.attribute]
    if not nodes:
        return False
    attribute = draw.choice(draw.choice(nodes).attribute)
    if attribute.type == onnx.AttributeProto.INT:
        attribute.i = draw.choice(SIZES)
    elif attribute.type == onnx.AttributeProto.FLOAT:
        attribute.f = draw.choice(REALS)
    elif attribute.type == onnx.AttributeProto.INTS and attribute.ints:
        for k in range(len(attribute.ints)) if draw.random() < 0.5 else [
                draw.randrange(len(attribute.ints))]:
            attribute.ints[k] = draw.choice(SIZES)
    elif attribute.type == onnx.AttributeProto.FLOATS and attribute.floats:
        attribute.floats[draw.randrange(len(attribute.floats))] = draw.choice(REALS)
    else:
        return False
    for info in list(model.graph.output) + list(model.graph.value_info):
        info.type.tensor_type.ClearField("shape")
    return True


def extreme(array, draw):
    array = array.copy()
    if array.size == 0 or array.dtype.kind not in "iuf":
        return None
    at = draw.randrange(array.size)
    if array.dtype.kind == "f":
        array.flat[at] = draw.choice(REALS)
    else:
        array.flat[at] = np.array(draw.choice(SIZES) & ((1 << 64) - 1), np.uint64).astype(array.dtype)
    return array


def read_inputs(case, model):
    inputs = {}
    initializers = {i.name for i in model.graph.initializer}
    given = [i for i in model.graph.input if i.name not in initializers]
    for k, info in enumerate(given):
        path = case / "test_data_set_0" / f"input_{k}.pb"
        if not path.exists() or not info.type.HasField("tensor_type"):
            return None
        tensor = onnx.TensorProto()
        tensor.ParseFromString(path.read_bytes())
        inputs[info.name] = tensor
    return inputs


def make_constant(model, inputs, draw, change):
    """The inputs become initializers, one of the small ones with an extreme element."""
    small = [n for n, t in inputs.items()
             if 0 < int(np.prod(t.dims)) <= 16 and t.data_type in (1, 6, 7, 11)]
    if change and not small:
        return False
    if change:
        name = draw.choice(small)
        array = extreme(numpy_helper.to_array(inputs[name]), draw)
        if array is None:
            return False
        inputs[name] = numpy_helper.from_array(array, name)
        for info in list(model.graph.output) + list(model.graph.value_info):
            info.type.tensor_type.ClearField("shape")
    for name, tensor in inputs.items():
        tensor.name = name
        model.graph.initializer.append(tensor)
    kept = [i for i in model.graph.input if i.name not in inputs]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    return True


def run(command):
    """Status, seconds, peak bytes, last words. Seconds: a machine that others use counts once."""
    read, write = os.pipe()
    begin = time.monotonic()
    pid = os.fork()
    if pid == 0:
        os.dup2(write, 1)
        os.dup2(write, 2)
        os.close(read)
        signal.alarm(LONGEST_S * 12)
        os.execv(command[0], command)
    os.close(write)
    with os.fdopen(read, "rb") as stream:
        text = stream.read()
    _, status, usage = os.wait4(pid, 0)
    seconds = min(time.monotonic() - begin, usage.ru_utime + usage.ru_stime)
    return (os.waitstatus_to_exitcode(status), seconds, usage.ru_maxrss * 1024,
            text[-200:].decode(errors="replace"))


def judge(outcome, most_bytes):
    status, seconds, peak, _ = outcome
    if status < 0 or status > 5:
        return f"ended with {status}"
    if seconds > LONGEST_S:
        return f"took {seconds:.1f} s"
    if peak > most_bytes:
        return f"took {peak >> 20} MB"
    return None


def variant(case, draw):
    model = onnx.load(case / "model.onnx", load_external_data=False)
    inputs = read_inputs(case, model)
    if inputs is None:
        return None
    changes_value = draw.random() < 0.5
    if not changes_value and not change_attribute(model, draw):
        changes_value = True
    if draw.random() < 0.7 or changes_value:
        if not make_constant(model, inputs, draw, changes_value):
            return None
    return model


def commands(path, limits):
    """(command, the most bytes it may take)."""
    check, rewrite = ["ort-inspect", path, "--check"], ["ort-optimize", path, "-o", "/dev/null"]
    under = MEMORY + SLACK_BYTES
    made = [(check + limits, under), (rewrite + limits, under),
            (["ort-run", path, "--random", "1", "--hash"] + limits, under)]
    if os.path.getsize(path) < 1 << 20:
        made += [(check, FREE_BYTES), (rewrite + ["--no-verify"], FREE_BYTES)]
    return made


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin")
    parser.add_argument("cases", nargs="+")
    draws.add_options(parser, "only", 2, "models per case")
    o = parser.parse_args()
    limits = ["--timeout", str(TIMEOUT_S), "--max-memory", str(MEMORY)]
    cases = sorted(c for d in o.cases for c in pathlib.Path(d).iterdir()
                   if fnmatch.fnmatch(c.name, o.only) and (c / "model.onnx").exists())
    ran = failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        path = f"{scratch}/m.onnx"
        for case in cases:
            for k in range(o.count):
                draw = random.Random(f"{o.seed} {case.name} {k}")
                try:
                    model = variant(case, draw)
                except (ValueError, TypeError, OverflowError):
                    continue
                if model is None:
                    continue
                onnx.save(model, path)
                for tool, most in commands(path, limits):
                    outcome = run([f"{o.bin}/{tool[0]}"] + tool[1:])
                    ran += 1
                    why = judge(outcome, most)
                    if why:
                        failed += 1
                        print(f"{case.name} {k}: {tool[0]} {why}: {outcome[3].strip()}", flush=True)
                        if o.keep:
                            onnx.save(model, draws.kept(o.keep) / f"{case.name}-{o.seed}-{k}.onnx")
    print(f"{ran - failed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
