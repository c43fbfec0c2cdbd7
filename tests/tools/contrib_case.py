"""What the makers of com.microsoft test cases share: inputs, and write(), which makes one case.

A group is a function in a module contrib_*.py, named in its GROUPS. Each group draws from a
generator seeded by its name, so groups don't disturb each other's values.
"""
import json
import pathlib
import shutil
import sys
import zlib

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

MS = "com.microsoft"
OUT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else
                   pathlib.Path(__file__).resolve().parents[1] / "onnx" / "contrib")
F, F16, BF16, F64 = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16,
                     onnx.TensorProto.DOUBLE)
I8, U8, I16, U16 = (onnx.TensorProto.INT8, onnx.TensorProto.UINT8, onnx.TensorProto.INT16,
                    onnx.TensorProto.UINT16)
I32, U32, I64, U64, BOOL = (onnx.TensorProto.INT32, onnx.TensorProto.UINT32,
                            onnx.TensorProto.INT64, onnx.TensorProto.UINT64,
                            onnx.TensorProto.BOOL)
STRING = onnx.TensorProto.STRING
bfloat16 = ml_dtypes.bfloat16
rng = np.random.default_rng(7)


def seed(group):
    global rng
    rng = np.random.default_rng(zlib.crc32(group.encode()))


def real(*shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


def ints(high, *shape, dtype=np.int32, low=0):
    return np.asarray(rng.integers(low, high, shape)).astype(dtype)


def scalar(value, dtype=np.float32):
    return np.array(value, dtype)


def tensor_type(array):
    return helper.np_dtype_to_tensor_dtype(array.dtype)


def onnx_model(name, op, given, slots, fed, outputs, via, attributes, opset, domain, exact):
    """One node, and unless exact a Cast before and after it for types that onnxruntime's Python
    can't pass."""
    before = [helper.make_node("Cast", [k + "_fed"], [k], to=tensor_type(given[k]))
              for k in fed if given[k].dtype == bfloat16 and not exact]
    after = [helper.make_node("Cast", [k + "_raw"], [k], to=via[k]) for k in via]
    node = helper.make_node(op, slots,
                            ["" if outputs[k] is None else k + "_raw" if k in via else k
                             for k in outputs],
                            domain=domain, **attributes)
    cast = {n.output[0] for n in before}
    graph = helper.make_graph(
        [*before, node, *after], name,
        [helper.make_tensor_value_info(k + "_fed" if k in cast else k,
                                       F if k in cast else tensor_type(given[k]), given[k].shape)
         for k in fed],
        [helper.make_tensor_value_info(k, via.get(k, t), None) for k, t in outputs.items() if t],
        [numpy_helper.from_array(given[k], k) for k in given if k not in fed])
    opsets = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(MS, 1)] if domain else [])
    return helper.make_model(graph, opset_imports=opsets, ir_version=10 if opset > 18 else 8)


def write(name, op, inputs, outputs, attributes, constant=(), rtol=1e-3, atol=1e-5, opset=17,
          domain=MS, via=None, shared=None, expected=None):
    """inputs: name to array (None: absent); constant: names that become initializers; via: outputs
    that are cast to another type before they leave the model; shared: outputs that onnxruntime
    wants in the memory of an input; expected: arrays for the outputs, for what onnxruntime can't
    run. An output of type None is left out."""
    via = dict(via or {})
    if expected is None:
        via |= {k: F for k, t in outputs.items() if t == BF16}
    given = {k: v for k, v in inputs.items() if v is not None}
    fed = [k for k in given if k not in constant]
    slots = [k if v is not None else "" for k, v in inputs.items()]
    model = onnx_model(name, op, given, slots, fed, outputs, via, attributes, opset, domain,
                       expected is not None)
    feeds = {k: given[k] for k in fed}
    if expected is None:
        save(name, model, feeds, op, rtol, atol, opset, domain, shared)
    else:
        keep(name, model, feeds, expected, op, rtol, atol, opset, domain)


def run_bound(session, feeds, shared):
    binding = session.io_binding()
    values = {k: onnxruntime.OrtValue.ortvalue_from_numpy(v.copy()) for k, v in feeds.items()}
    for k, value in values.items():
        binding.bind_ortvalue_input(k, value)
    for output in session.get_outputs():
        if output.name in shared:
            binding.bind_ortvalue_output(output.name, values[shared[output.name]])
        else:
            binding.bind_output(output.name)
    session.run_with_iobinding(binding)
    return binding.copy_outputs_to_cpu()


def save(name, model, fed, op, rtol=1e-3, atol=1e-5, opset=17, domain=MS, shared=None,
         reference=None):
    """Run the model, or one of the same meaning, and keep it with its inputs and outputs."""
    feeds = {k + "_fed" if v.dtype == bfloat16 else k:
             v.astype(np.float32) if v.dtype == bfloat16 else v for k, v in fed.items()}
    session = onnxruntime.InferenceSession((reference or model).SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    results = run_bound(session, feeds, shared) if shared else session.run(None, feeds)
    names = [v.name for v in model.graph.output]
    keep(name, model, feeds, dict(zip(names, results, strict=True)), op, rtol, atol, opset, domain)


def keep(name, model, feeds, results, op, rtol, atol, opset, domain):
    """Write the folder of one case; feeds and results: arrays by name."""
    if (OUT / name).exists():
        shutil.rmtree(OUT / name)
    data = OUT / name / "test_data_set_0"
    data.mkdir(parents=True)
    onnx.save(model, OUT / name / "model.onnx")
    for prefix, arrays in (("input", feeds), ("output", results)):
        for k, (label, array) in enumerate(arrays.items()):
            proto = numpy_helper.from_array(np.asarray(array), label)
            (data / f"{prefix}_{k}.pb").write_bytes(proto.SerializeToString())
    meta = {"name": name, "rtol": rtol, "atol": atol, "op": op, "domain": domain or "ai.onnx",
            "opset": {"ai.onnx": opset, MS: 1}}
    (OUT / name / "meta.json").write_text(json.dumps(meta, indent=1) + "\n")
