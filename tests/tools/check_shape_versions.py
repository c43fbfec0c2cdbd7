#!/usr/bin/env python3
"""check_shape_versions.py DUMP_PROGRAM FOLDER - the older versions of every operator.

The conformance tests use the newest version of an operator only. Each of their one-node models is given
every older version (from opset 6) that takes its inputs, attributes and types, and what we infer is
held against onnx.shape_inference as in check_shapes.py: never less precise, never in contradiction. The
recorded outputs don't judge, an older version may compute something else.

One test is one model at one version that onnx's own checker accepts. Closes with the counts over all
values and "N passed, N failed, N skipped".
"""
import collections
import pathlib
import sys

import onnx
import onnx.defs
from check_shapes import FAILURES, Dumper, compare, inputs_of, make_form, recorded, show, theirs

OLDEST_OPSET = 6
FORMS = ["recorded", "recorded+constants", "symbolic+constants", "unranked", "open+constants"]

# Operator, versions, form (a part of its name): why onnx is wrong.
EXCEPTIONS = [
    ("Slice", (10,), "symbolic",
     "onnx keeps the name of an axis that is cut"),
    ("Attention", (23,), "unranked",
     "onnx gives a scalar as qk_matmul_output for inputs of unknown rank; it has rank 4"),
    ("MaxPool", (10, 11, 12), "recorded",
     "onnx counts a window that begins behind the input and its padding; the formula of later "
     "versions, and the one that onnxruntime uses for all, does not"),
    ("AveragePool", (10, 11, 19), "recorded", "as MaxPool"),
]


def history():
    found = collections.defaultdict(list)
    for schema in onnx.defs.get_all_schemas_with_history():
        if not schema.deprecated:
            found[schema.domain, schema.name].append(schema)
    return found


def types_fit(node, schema, types):
    for k, name in enumerate(node.input):
        kind = types.get(name)
        if kind is None or kind.WhichOneof("value") != "tensor_type":
            continue
        code = onnx.helper.tensor_dtype_to_string(kind.tensor_type.elem_type)
        allowed = schema.inputs[min(k, len(schema.inputs) - 1)].types
        if f"tensor({code.split('.')[-1].lower()})" not in allowed:
            return False
    return True


def fits(model, schema):
    """Does this version take the model's node?"""
    node, given = model.graph.node[0], {a.name for a in model.graph.node[0].attribute}
    required = {k for k, a in schema.attributes.items() if a.required}
    counts = schema.min_input <= len(node.input) <= schema.max_input and \
        schema.min_output <= len(node.output) <= schema.max_output
    return counts and given <= set(schema.attributes) and required <= given and \
        types_fit(node, schema, {i.name: i.type for i in model.graph.input})


def older(model, schemas):
    """The model at each older version, and that version."""
    node = model.graph.node[0]
    now = {o.domain: o.version for o in model.opset_import}[node.domain]
    current = max((s.since_version for s in schemas if s.since_version <= now), default=0)
    for schema in schemas:
        version = schema.since_version
        if version >= current or node.domain == "" and version < OLDEST_OPSET or \
                not fits(model, schema):
            continue
        old = onnx.ModelProto()
        old.CopyFrom(model)
        for o in old.opset_import:
            if o.domain == node.domain:
                o.version = version
        yield old, version


def accepted(model):
    try:
        onnx.checker.check_model(model, full_check=False)
        onnx.shape_inference.infer_shapes(model, check_type=True)
    except Exception:  # the checker has many; a model that is none at this version
        return False
    return True


def excepted(op, version, form):
    return any(op == name and version in versions and part in form
               for name, versions, part, _ in EXCEPTIONS)


def check(dumper, model, version, values, label, count):
    """Returns the number of failures."""
    failed, op = 0, model.graph.node[0].op_type
    for form in FORMS:
        made, env = make_form(model, form, values)
        if made is None:
            continue
        ours, _ = dumper.infer(made)
        for data_prop in (False, True):
            for name, their in theirs(made, data_prop)[0].items():
                our = ours.get(name, ("", None))[1]
                verdict = compare(our, their, env)
                if verdict in FAILURES and excepted(op, version, form):
                    verdict = "excepted"
                count[verdict] += 1
                if verdict in FAILURES:
                    failed += 1
                    print(f"not ok {verdict}: {label} {op}-{version} ({form}) '{name}': "
                          f"ours {show(our)}, onnx {show(their)}")
    return failed


def main():
    dumper, schemas, count = Dumper(sys.argv[1]), history(), collections.Counter()
    passed = failed = 0
    for path in sorted(pathlib.Path(sys.argv[2]).glob("*/model.onnx")):
        model = onnx.load(path)
        if len(model.graph.node) != 1:
            continue
        node = model.graph.node[0]
        values = recorded(path.parent / "test_data_set_0", "input", inputs_of(model))
        for old, version in older(model, schemas[node.domain, node.op_type]):
            if not accepted(old):
                continue
            bad = check(dumper, old, version, values, path.parent.name, count)
            passed, failed = passed + (not bad), failed + bool(bad)
    print("values: " + ", ".join(f"{n} {v}" for v, n in sorted(count.items())))
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


sys.exit(main())
