"""Runs of ONNX models on onnxruntime that the checks of the optimizer share: a session, the inputs
of a folder (test_data_set_0 or inputs.npz), and whether two lists of outputs agree.
"""
import json

import numpy as np
import onnx
import onnxruntime as ort

ort.set_default_logger_severity(4)
LEVELS = {"off": ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
          "basic": ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
          "extended": ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
          "all": ort.GraphOptimizationLevel.ORT_ENABLE_ALL}


def session(path, level="off", written=None):
    """With one thread. `written`: where onnxruntime puts its own optimized file."""
    options = ort.SessionOptions()
    options.graph_optimization_level = LEVELS[level]
    options.intra_op_num_threads = 1
    if written:
        options.optimized_model_filepath = str(written)
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def read_pb(path):
    tensor = onnx.TensorProto()
    tensor.ParseFromString(path.read_bytes())
    return onnx.numpy_helper.to_array(tensor)


def read_map(path, key_type):
    pairs = json.loads(path.read_text())
    return {int(k) if "int64" in key_type else k: v for k, v in pairs.items()}


def inputs_of(folder, model):
    """By name, what is on file; None when an input is neither a tensor nor a map."""
    archive = folder / "inputs.npz"
    if archive.exists():
        return dict(np.load(archive))
    feeds = {}
    for i, value in enumerate(model.get_inputs()):
        at = folder / "test_data_set_0"
        if value.type.startswith("map") and (at / f"input_{i}.json").exists():
            feeds[value.name] = read_map(at / f"input_{i}.json", value.type)
            continue
        if not value.type.startswith("tensor"):
            return None
        if (at / f"input_{i}.pb").exists():
            feeds[value.name] = read_pb(at / f"input_{i}.pb")
    return feeds


def on_codes(path):
    """Computes with sums of 8-bit codes. Where it does and its source didn't, sums round to another
    step: 8 of 255 are allowed."""
    return any(n.op_type.startswith("QLinear") or n.op_type == "QGemm"
               for n in onnx.load(str(path), load_external_data=False).graph.node)


def tolerances(folder):
    """rtol, atol of the folder's meta.json, doubled: two runtimes may each be off by them."""
    path = folder / "meta.json"
    meta = json.loads(path.read_text()) if path.exists() else {}
    return 2 * meta.get("rtol", 5e-4), 2 * meta.get("atol", 5e-6)


def differ_in_maps(a, b, rtol, atol):
    if len(a) != len(b):
        return True
    for left, right in zip(a, b):
        if left.keys() != right.keys():
            return True
        if not np.allclose(list(left.values()), list(right.values()), rtol=rtol, atol=atol):
            return True
    return False


def differ(a, b, codes=False, rtol=1e-3, atol=1e-5):
    """Outputs of the same name; `codes`: of a share of the largest value instead."""
    if isinstance(a, list) and a and isinstance(a[0], dict) and isinstance(b, list):
        return differ_in_maps(a, b, rtol, atol)
    if not isinstance(a, np.ndarray):
        return a is not b and str(a) != str(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return True
    if a.dtype.kind != "f":
        return not np.array_equal(a, b)
    if codes and a.size:
        rtol, atol = codes, codes * float(np.nanmax(np.abs(a)))
    return not np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True)
