#!/usr/bin/env python3
"""Models converted to another opset, beside the packages' own judgement.

usage: check_opsets.py WRITTEN_DIR SOURCE_DIR OPSET [REPORT]

WRITTEN_DIR holds NAME.onnx (conformance --opset), SOURCE_DIR the folders NAME/model.onnx with
test_data_set_0. Each file must pass onnx.checker with its full check (shape inference included),
unless the original doesn't; on onnxruntime, where that has the operators, its outputs must be those
recorded. REPORT, the lines "BLOCKED NAME: why" of the conformance program, is gone through with
onnx.version_converter: what that converts to a valid model that computes the same, and we don't.

Prints a line "not ok ..." per failure, a line "blocked alone ..." per model that only we block, and
closes with "N passed, N failed, N skipped (...)".
"""
import os
import pathlib
import re
import sys

os.environ["ALLOW_RELEASED_ONNX_OPSET_ONLY"] = "0"

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime as ort  # noqa: E402
from onnx import version_converter  # noqa: E402

from check_written import differ, session  # noqa: E402

ort.set_default_logger_severity(4)
NEWEST = 27  # what onnxruntime reads
RANDOM = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
          "RandomUniformLike", "Dropout"}


def tensor(path):
    value = onnx.TensorProto()
    value.ParseFromString(path.read_bytes())
    array = onnx.numpy_helper.to_array(value)
    return array.view(np.uint8) if array.dtype.name.startswith("float8") else array


def recorded(folder, prefix, names):
    """By name; None when one isn't a tensor."""
    values = {}
    for i, name in enumerate(names):
        path = folder / "test_data_set_0" / f"{prefix}_{i}.pb"
        if path.exists():
            try:
                values[name] = tensor(path)
            except Exception:  # noqa: BLE001 - a sequence, a map, an optional
                return None
    return values


def is_random(model):
    return any(node.op_type in RANDOM for node in model.graph.node)


def runs(path, folder):
    """None: onnxruntime doesn't run it; "": as recorded; else what differs."""
    model = onnx.load(str(path), load_external_data=False)
    if is_random(model) or any(o.version > NEWEST for o in model.opset_import if not o.domain):
        return None
    try:
        opened = session(path)
        feeds = recorded(folder, "input", [i.name for i in opened.get_inputs()])
        wanted = recorded(folder, "output", [o.name for o in opened.get_outputs()])
        if feeds is None or wanted is None:
            return None
        got = opened.run(None, feeds)
    except Exception:  # noqa: BLE001 - whatever it refuses is not ours to judge here
        return None
    bad = [name for name, (want, have) in zip(wanted, zip(wanted.values(), got))
           if differ(want, have)]
    return f"onnxruntime: outputs differ: {', '.join(bad)}" if bad else ""


def valid(path):
    try:
        onnx.checker.check_model(str(path), full_check=True)
        return ""
    except Exception as error:  # noqa: BLE001
        return str(error).strip().splitlines()[0]


def check(written, folder):
    """What is wrong with a converted model, or "", and whether onnxruntime had a say."""
    wrong = valid(written)
    if wrong and not valid(folder / "model.onnx"):
        return f"onnx.checker: {wrong}", False
    result = runs(written, folder)
    if result and not runs(folder / "model.onnx", folder):  # the original agrees, or doesn't run
        return result, True
    return "", result is not None


def converter_does(folder, opset, scratch):
    """Does onnx's own converter make a valid model that computes the same?"""
    try:
        model = onnx.load(str(folder / "model.onnx"))
        made = version_converter.convert_version(model, opset)
        onnx.save(made, str(scratch))
    except Exception:  # noqa: BLE001
        return False
    return not valid(scratch) and runs(scratch, folder) == ""


def main():
    written, source = map(pathlib.Path, sys.argv[1:3])
    opset = int(sys.argv[3])
    passed = failed = ran = 0
    for path in sorted(written.glob("*.onnx")):
        wrong, had_a_say = check(path, source / path.stem)
        passed += not wrong
        failed += bool(wrong)
        ran += had_a_say
        if wrong:
            print(f"not ok {path.stem} at opset {opset}: {wrong}")
    blocked = alone = 0
    for line in open(sys.argv[4], encoding="utf-8") if len(sys.argv) > 4 else ():
        match = re.match(r"BLOCKED (\S+): (.*)", line)
        if not match:
            continue
        blocked += 1
        if converter_does(source / match[1], opset, written / "converter.tmp"):
            alone += 1
            print(f"blocked alone {match[1]} at opset {opset}: {match[2]}")
    (written / "converter.tmp").unlink(missing_ok=True)
    print(f"{passed} passed, {failed} failed, 0 skipped (opset {opset}: {ran} run on onnxruntime, "
          f"{blocked} blocked, of which onnx.version_converter converts {alone})")
    return failed > 0 or passed == 0


if __name__ == "__main__":
    sys.exit(main())
