#!/usr/bin/env python3
"""Write ONNX's own backend node tests, as the onnx package generates them, into folders.

usage: make_conformance.py [OUTPUT_DIR]        (default build/conformance)

One folder per test: model.onnx, test_data_set_0/input_K.pb and output_K.pb in graph order
(TensorProto, SequenceProto, OptionalProto or MapProto by the declared type) and meta.json with
name, rtol, atol, op, domain, opset and expanded (a test of the function body of an operator). Does
nothing when the stamp names this package version and this script.
"""
import hashlib
import json
import pathlib
import re
import shutil
import sys
import warnings

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from onnx.backend.test.case.node import collect_testcases


def to_proto(value, info):
    kind = info.type.WhichOneof("value")
    if kind == "map_type":
        return numpy_helper.from_dict(value, info.name)
    if kind == "sequence_type":
        return numpy_helper.from_list(value, info.name)
    if kind == "optional_type":
        return numpy_helper.from_optional(value, info.name)
    if isinstance(value, TensorProto):
        return value
    return numpy_helper.from_array(np.asarray(value), info.name)


def subject(case, by_name):
    """The operator that a test is about: (domain, op type)."""
    base = re.sub(r"_expanded(_ver\d+)?(_.*)?$", "", case.name)
    model = by_name.get(base, case).model
    nodes = [n for n in model.graph.node if n.op_type != "Constant"] or list(model.graph.node)
    flat = case.name.replace("_", "")[len("test"):]
    named = [n for n in nodes if flat.startswith(n.op_type.lower())]
    node = max(named, key=lambda n: len(n.op_type)) if named else nodes[0]
    return node.domain, node.op_type


def write_case(case, folder, by_name):
    folder.mkdir(parents=True)
    onnx.save(case.model, folder / "model.onnx")
    for index, (inputs, outputs) in enumerate(case.data_sets):
        data = folder / f"test_data_set_{index}"
        data.mkdir()
        for prefix, values, infos in (("input", inputs, case.model.graph.input),
                                      ("output", outputs, case.model.graph.output)):
            for k, (value, info) in enumerate(zip(values, infos, strict=True)):
                (data / f"{prefix}_{k}.pb").write_bytes(to_proto(value, info).SerializeToString())
    domain, op = subject(case, by_name)
    opsets = {o.domain or "ai.onnx": o.version for o in case.model.opset_import}
    meta = {"name": case.name, "rtol": case.rtol, "atol": case.atol, "op": op,
            "domain": domain or "ai.onnx", "opset": opsets, "expanded": "_expanded" in case.name}
    (folder / "meta.json").write_text(json.dumps(meta, indent=1) + "\n")


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else root / "build" / "conformance"
    stamp = f"{onnx.__version__} {hashlib.sha256(pathlib.Path(__file__).read_bytes()).hexdigest()}\n"
    if (out / ".stamp").exists() and (out / ".stamp").read_text() == stamp:
        return
    print(f"make_conformance: generating onnx {onnx.__version__} node tests in {out}",
          file=sys.stderr)
    if out.exists():
        shutil.rmtree(out)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    by_name = {case.name: case for case in cases}
    for case in cases:
        write_case(case, out / case.name, by_name)
    (out / ".stamp").write_text(stamp)
    print(f"make_conformance: {len(cases)} tests", file=sys.stderr)


if __name__ == "__main__":
    main()
