#!/usr/bin/env python3
"""Write ONNX's own backend tests into folders: the node tests, as the onnx package generates them,
and the models that it carries (simple, pytorch-operator, pytorch-converted, light).

usage: make_conformance.py [OUTPUT_DIR]        (default build/conformance)

One folder per test: model.onnx, test_data_set_0/input_K.pb and output_K.pb in graph order
(TensorProto, SequenceProto, OptionalProto or MapProto by the declared type) and meta.json with
name, folder (node, simple, ...), rtol, atol, op, domain, opset and expanded (a test of the function
body of an operator). Does nothing when the stamp names this package version and this script.

Expected values that are draws of numpy's global generator can only come again from the state that
the generator had: meta.json then has "random": {"seed", "skip"}, the option --seed of ort-run. For
the tests of Bernoulli the state is recorded while the package draws (its script has drawn the input
before). The function body of Bernoulli compares the wrong way around (a one where the number is
greater than p, so with probability 1 - p): no state of the script leads from it to the expected
values, so the state is looked for, with numpy alone, at which the body gives them.
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
from onnx.backend.test.case import node as node_cases
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner

MODEL_FOLDERS = ("simple", "pytorch-operator", "pytorch-converted", "light")


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


class Recorder:
    """The states of numpy's global generator when expected values are drawn by np.random.binomial.

    Tests are made by functions that begin with np.random.seed(0); what such a function appends to the
    list of tests after a draw has expected values of that draw.
    """

    def __init__(self):
        self.drawn = []  # (index of the first test, seed, skip)
        self.ends = []  # index of the first test of the next function, parallel to drawn
        self.seed, self.binomial = np.random.seed, np.random.binomial

    def __enter__(self):
        def seed(seed=None):
            self.close()
            self.last_seed = seed
            self.seed(seed)

        def binomial(*args, **kwargs):
            position = np.random.get_state()[2] % 624
            assert position % 2 == 0, "words are drawn in pairs"
            self.close()
            self.drawn.append((len(node_cases._NodeTestCases), self.last_seed, position // 2))
            return self.binomial(*args, **kwargs)

        np.random.seed, np.random.binomial = seed, binomial
        return self

    def close(self):
        if len(self.ends) < len(self.drawn):
            self.ends.append(len(node_cases._NodeTestCases))

    def __exit__(self, *_):
        self.close()
        np.random.seed, np.random.binomial = self.seed, self.binomial

    def states(self, cases):
        """{test name: {"seed", "skip"}}"""
        found = {}
        for (first, seed, skip), end in zip(self.drawn, self.ends, strict=True):
            for case in cases[first:end]:
                body = len(case.model.graph.node) > 1
                found[case.name] = search_state(case) if body else {"seed": seed, "skip": skip}
        return found


def search_state(case, seed=0, most=1 << 23):
    """Where in RandomState(seed) the body of Bernoulli gives the expected values."""
    draw, compare, _ = case.model.graph.node
    assert (draw.op_type, compare.op_type) == ("RandomUniformLike", "Greater")
    ((p,), (expected,)), = case.data_sets
    numbers = np.random.RandomState(seed).random_sample(most).astype(p.dtype)
    fits = np.ones(most - p.size + 1, dtype=bool)
    for i in range(p.size):
        fits &= (numbers[i:i + fits.size] > p[i]) == (expected[i] != 0)
    if not fits.any():
        raise SystemExit(f"make_conformance: no state within {most} draws gives {case.name}")
    return {"seed": seed, "skip": int(fits.argmax())}


def write_meta(case, path, **members):
    meta = {"name": case.name, "rtol": case.rtol, "atol": case.atol, **members}
    (path / "meta.json").write_text(json.dumps(meta, indent=1) + "\n")


def write_case(case, folder, by_name, states):
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
    random = {"random": states[case.name]} if case.name in states else {}
    write_meta(case, folder, folder="node", op=op, domain=domain or "ai.onnx",
               opset={o.domain or "ai.onnx": o.version for o in case.model.opset_import},
               expanded="_expanded" in case.name, **random)


def light_files(url):
    """A model of the package and its values: inputs made as the package's own runner makes them."""
    model_path = pathlib.Path(onnx.__file__).parents[1] / url
    model = onnx.load(model_path)
    values = {}
    given = {i.name for i in model.graph.initializer}
    inputs = [i for i in model.graph.input if i.name not in given]
    for k, info in enumerate(inputs):
        value = Runner.generate_dummy_data(info)
        values[f"input_{k}.pb"] = numpy_helper.from_array(value, info.name).SerializeToString()
    for k in range(len(model.graph.output)):
        values[f"output_{k}.pb"] = model_path.with_name(
            f"{model_path.stem}_output_{k}.pb").read_bytes()
    return model_path, values


def write_model(case, kind, folder):
    """A test of one of MODEL_FOLDERS; those of light are listed among the real models."""
    folder.mkdir(parents=True)
    if kind == "light":
        model_path, values = light_files(case.url)
        (folder / "test_data_set_0").mkdir()
        for name, content in values.items():
            (folder / "test_data_set_0" / name).write_bytes(content)
    else:
        model_path = pathlib.Path(case.model_dir) / "model.onnx"
        for data in sorted(pathlib.Path(case.model_dir).glob("test_data_set_*")):
            shutil.copytree(data, folder / data.name)
    shutil.copy(model_path, folder / "model.onnx")
    write_meta(case, folder, folder=kind, op=kind, domain="ai.onnx")


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else root / "build" / "conformance"
    stamp = f"{onnx.__version__} {hashlib.sha256(pathlib.Path(__file__).read_bytes()).hexdigest()}\n"
    if (out / ".stamp").exists() and (out / ".stamp").read_text() == stamp:
        return
    print(f"make_conformance: generating onnx {onnx.__version__} tests in {out}",
          file=sys.stderr)
    if out.is_symlink():
        out.unlink()  # whoever else shares that folder keeps it
    elif out.exists():
        shutil.rmtree(out)
    with warnings.catch_warnings(), Recorder() as recorder:
        warnings.simplefilter("ignore")
        cases = node_cases.collect_testcases(None)
    by_name = {case.name: case for case in cases}
    states = recorder.states(cases)
    for case in cases:
        write_case(case, out / case.name, by_name, states)
    counts = {"node": len(cases)}
    for kind in MODEL_FOLDERS:
        models = load_model_tests(kind="real" if kind == "light" else kind)
        counts[kind] = len(models)
        for case in models:
            write_model(case, kind, out / case.name)
    (out / ".stamp").write_text(stamp)
    print("make_conformance: " + ", ".join(f"{n} {kind}" for kind, n in counts.items()),
          file=sys.stderr)


if __name__ == "__main__":
    main()
