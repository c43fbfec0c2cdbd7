#!/usr/bin/env python3
"""What ort-optimize's library wrote, on onnxruntime: a model that onnxruntime runs as it was must
check, run and give the same after it was rewritten.

usage: check_written.py WRITTEN_DIR SOURCE_DIR

WRITTEN_DIR holds NAME.onnx (conformance --optimize), SOURCE_DIR the folders NAME/model.onnx with
test_data_set_0. Models that draw random numbers are left out: two runs of the original differ.
"""
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime as ort

ort.set_default_logger_severity(4)


def session(path):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def inputs_of(folder, model):
    """Tensor inputs by name; None when one is of another kind."""
    feeds = {}
    for i, value in enumerate(model.get_inputs()):
        path = folder / "test_data_set_0" / f"input_{i}.pb"
        if not value.type.startswith("tensor"):
            return None
        if path.exists():
            tensor = onnx.TensorProto()
            tensor.ParseFromString(path.read_bytes())
            feeds[value.name] = onnx.numpy_helper.to_array(tensor)
    return feeds


def quantized(path):
    """Sums of codes round to another step where float arithmetic is exact: 8 of 255 steps."""
    return any(n.op_type.startswith("QLinear") or n.op_type == "QGemm"
               for n in onnx.load(str(path), load_external_data=False).graph.node)


def differ(a, b, codes=False):
    if not isinstance(a, np.ndarray):
        return a is not b and str(a) != str(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return True
    if a.dtype.kind != "f":
        return not np.array_equal(a, b)
    if codes and a.size:
        return not np.allclose(a, b, rtol=0.03, atol=0.03 * float(np.abs(a).max()))
    return not np.allclose(a, b, rtol=1e-3, atol=1e-5, equal_nan=True)


def check(written, folder):
    """None: onnxruntime doesn't run the original; "": all is well; else what is wrong."""
    try:
        original = session(folder / "model.onnx")
        feeds = inputs_of(folder, original)
        if feeds is None:
            return None
        wanted, again = original.run(None, feeds), original.run(None, feeds)
    except Exception:  # noqa: BLE001 - whatever it refuses is not ours to judge
        return None
    if any(differ(a, b) for a, b in zip(wanted, again)):
        return None
    try:
        onnx.checker.check_model(str(written))
        got = session(written).run(None, feeds)
    except Exception as error:  # noqa: BLE001
        return str(error).splitlines()[0]
    codes = quantized(written) and not quantized(folder / "model.onnx")
    bad = [o.name for o, a, b in zip(original.get_outputs(), wanted, got) if differ(a, b, codes)]
    return f"outputs differ: {', '.join(bad)}" if bad else ""


def main():
    written, source = map(pathlib.Path, sys.argv[1:])
    passed = failed = skipped = 0
    for path in sorted(written.glob("*.onnx")):
        result = check(path, source / path.stem)
        passed += result == ""
        skipped += result is None
        if result:
            failed += 1
            print(f"not ok {path.stem}: {result}")
    print(f"{passed} passed, {failed} failed, {skipped} skipped (onnxruntime doesn't run these)")
    return failed > 0 or passed == 0


if __name__ == "__main__":
    sys.exit(main())
