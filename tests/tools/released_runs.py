#!/usr/bin/env python3
"""Run the tests of build/released/cases on onnxruntime and compare with what held here.

usage: released_runs.py OURS REASONS CASES

OURS is the output of the conformance program with --list-failures; REASONS the list of tests that are not
expected to pass (tests/onnx/released.txt). Says how many tests hold here and there, and fails on
  a test that holds in onnxruntime and not here, whatever its reason
  a reason `mended-...` without a test of that name that holds here, from a later release or among those
    of build/conformance (make conformance holds them to an ignore list of its own)
  a reason that the head of REASONS doesn't explain.

Models run in a child process that answers a line per test; when it dies or takes too long, that test has
failed there and another child goes on behind it.
"""
import collections
import ctypes
import json
import pathlib
import re
import select
import subprocess
import sys

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TIMEOUT = 60
# Element types that numpy lacks travel as bits.
BITS = {TensorProto.BFLOAT16: np.uint16, TensorProto.FLOAT8E4M3FN: np.uint8,
        TensorProto.FLOAT8E4M3FNUZ: np.uint8, TensorProto.FLOAT8E5M2: np.uint8,
        TensorProto.FLOAT8E5M2FNUZ: np.uint8, TensorProto.FLOAT8E8M0: np.uint8}
PACKED = {TensorProto.INT4, TensorProto.UINT4, TensorProto.FLOAT4E2M1, TensorProto.INT2,
          TensorProto.UINT2}


# ---------------------------------------------------------------------------- onnxruntime --

def read_value(path, value_type):
    kinds = {"tensor_type": (onnx.TensorProto, numpy_helper.to_array),
             "sequence_type": (onnx.SequenceProto, numpy_helper.to_list),
             "optional_type": (onnx.OptionalProto, numpy_helper.to_optional),
             "map_type": (onnx.MapProto, numpy_helper.to_dict)}
    proto, convert = kinds[value_type.WhichOneof("value")]
    proto = proto()
    proto.ParseFromString(path.read_bytes())
    return convert(proto)


def read_values(folder, prefix, infos):
    files = [folder / f"{prefix}_{k}.pb" for k in range(len(infos))]
    return [read_value(f, info.type) if f.exists() else None for f, info in zip(files, infos)]


def fed(ort, value, value_type):
    """What onnxruntime takes: an OrtValue for tensors, Python's own lists for others."""
    if value_type.WhichOneof("value") == "optional_type":
        value_type = value_type.optional_type.elem_type
    element = value_type.tensor_type.elem_type
    if not isinstance(value, np.ndarray) or element not in BITS:
        return value
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(value.view(BITS[element]), element)


def bits_of(value):
    """A tensor of a type that numpy lacks, from onnxruntime's memory."""
    element = value.element_type()
    shape, size = value.shape(), value.tensor_size_in_bytes()
    if element in PACKED:
        raise RuntimeError("onnxruntime's Python has no packed outputs")
    raw = np.frombuffer(ctypes.string_at(value.data_ptr(), size), BITS[element]).reshape(shape)
    return raw.view(helper.tensor_dtype_to_np_dtype(element))


def held(value):
    exotic = value.is_tensor() and value.element_type() in BITS.keys() | PACKED
    return bits_of(value) if exotic else value.numpy() if value.has_value() else None


def differ(actual, expected, rtol, atol):
    if expected is None or actual is None:
        return actual is not expected
    if isinstance(expected, list):
        return len(actual) != len(expected) or any(
            differ(a, e, rtol, atol) for a, e in zip(actual, expected))
    if isinstance(expected, dict):
        return actual != expected
    actual, expected = np.asarray(actual), np.asarray(expected)
    if actual.shape != expected.shape:
        return True
    if expected.dtype.kind in "OUS":
        texts = [v.decode() if isinstance(v, bytes) else str(v) for v in expected.ravel()]
        return [str(v) for v in actual.ravel()] != texts
    if actual.dtype != expected.dtype:
        return True
    if expected.dtype == ml_dtypes.bfloat16:
        rtol = max(rtol, 1 / 64)
    wide = expected.dtype.kind not in "biufc"
    if wide:
        actual, expected = actual.astype(np.float32), expected.astype(np.float32)
    return not np.allclose(actual, expected, rtol=rtol, atol=atol, equal_nan=True)


def run_set(ort, session, model, data, meta):
    names = {i.name for i in session.get_inputs()}
    given = [i for i in model.graph.input if i.name in names]
    if len(list(data.glob("input_*.pb"))) == len(model.graph.input):
        given = list(model.graph.input)
    inputs = read_values(data, "input", given)
    expected = read_values(data, "output", model.graph.output)
    feeds = {i.name: fed(ort, v, i.type) for i, v in zip(given, inputs, strict=True)}
    if any(isinstance(v, ort.OrtValue) for v in feeds.values()):
        feeds = {k: v if isinstance(v, ort.OrtValue) else ort.OrtValue.ortvalue_from_numpy(v)
                 for k, v in feeds.items()}
        results = [held(v) for v in session.run_with_ort_values(None, feeds)]
    elif any(o.type.tensor_type.elem_type in BITS.keys() | PACKED for o in model.graph.output):
        feeds = {k: ort.OrtValue.ortvalue_from_numpy(v) for k, v in feeds.items()}
        results = [held(v) for v in session.run_with_ort_values(None, feeds)]
    else:
        results = session.run(None, feeds)
    for info, a, e in zip(model.graph.output, results, expected, strict=True):
        if differ(a, e, meta["rtol"], meta["atol"]):
            raise RuntimeError(f"output {info.name} differs")


def work(cases):
    import onnxruntime as ort
    ort.set_default_logger_severity(4)
    for line in sys.stdin:
        folder = cases / line.strip()
        try:
            options = ort.SessionOptions()
            options.intra_op_num_threads = 1
            model = onnx.load(folder / "model.onnx")
            session = ort.InferenceSession(str(folder / "model.onnx"), options,
                                           providers=["CPUExecutionProvider"])
            meta = json.loads((folder / "meta.json").read_text())
            for data in sorted(folder.glob("test_data_set_*")):
                run_set(ort, session, model, data, meta)
            said = "ok"
        except Exception as error:  # whatever it says, it did not hold
            said = " ".join(str(error).split())[:300] or type(error).__name__
        print(said, flush=True)


def theirs(cases, names):
    """{name: "ok" or what went wrong}."""
    said, child = {}, None
    for name in names:
        if child is None or child.poll() is not None:
            child = subprocess.Popen([sys.executable, __file__, "--worker", str(cases)], text=True,
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.DEVNULL, bufsize=1)
        child.stdin.write(name + "\n")
        child.stdin.flush()
        ready, _, _ = select.select([child.stdout], [], [], TIMEOUT)
        answer = child.stdout.readline().strip() if ready else ""
        said[name] = answer or ("crashed" if ready else f"took longer than {TIMEOUT} s")
        if not answer:
            child.kill()
            child.wait()
    if child:
        child.stdin.close()
        child.wait()
    return said


# --------------------------------------------------------------------------------- report --

def failures(path):
    line = re.compile(r"^(?:FAIL|UNSUPPORTED) (\S+): (.*)$", re.M)
    return dict(line.findall(path.read_text()))


def reasons(path):
    """{test: rule}, {rule: what it means}; a rule is a line "#   rule: meaning" of the head."""
    text = path.read_text()
    rules = dict(re.findall(r"^#   ([a-z-]+): (.*)$", text, re.M))
    tests = dict(re.findall(r"^(\S+@\S+)  ([a-z-]+)", text, re.M))
    return tests, rules


def release(name):
    return tuple(map(int, name.split("@")[1].split(".")))


def unmended(tests, names, failed, newest):
    """Tests called mended of which no later release has one that holds here."""
    holds = collections.defaultdict(list)
    for name in names:
        if name not in failed:
            holds[name.split("@")[0]].append(release(name))
    return [t for t, rule in tests.items() if rule.startswith("mended") and
            not any(r > release(t) for r in holds[t.split("@")[0]]) and
            not (newest / t.split("@")[0]).exists()]


def main():
    ours, listed, cases = map(pathlib.Path, sys.argv[1:4])
    newest = cases.parents[1] / "conformance"
    names = sorted(p.name for p in cases.iterdir() if (p / "model.onnx").exists())
    tests, rules = reasons(listed)
    failed = failures(ours)
    failed.update((t, rules.get(r, r)) for t, r in tests.items() if t not in failed)
    there = theirs(cases, names)
    good = [n for n in names if there[n] == "ok"]
    only = [n for n in good if n in failed]
    bad = [f"not ok {n}: holds in onnxruntime, not here: {failed[n]}" for n in only]
    bad += [f"not ok {t}: no later release has a test of its name that holds here"
            for t in unmended(tests, names, failed, newest)]
    bad += [f"not ok {t}: no rule '{r}'" for t, r in tests.items() if r not in rules]
    print("\n".join(bad), end="\n" if bad else "")
    print(f"{len(names)} distinct tests: {len(names) - len(failed)} hold here, {len(good)} in "
          f"onnxruntime, {len(only)} there and not here")
    for rule, count in collections.Counter(tests.values()).most_common():
        print(f"{count:5d} {rule}: {rules.get(rule, '')}")
    print(f"{len(names) - len(failed)} passed, {len(bad)} failed, {len(tests)} skipped")
    return bool(bad)


if __name__ == "__main__":
    if sys.argv[1] == "--worker":
        work(pathlib.Path(sys.argv[2]))
    else:
        sys.exit(main())
