"""peers.py - what a case should give: by onnxruntime where it has a kernel, else by ONNX's reference
evaluator. A formula, where a generator has one, is a peer between the two: written in numpy from the
specification alone, in double.

Small floats and ints below 8 bits are computed by the peer in float or int32 where the schema takes
those, and rounded once: that is what this library promises (the reference evaluator rounds after
every step).
"""
import os
import re
import warnings

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
import numpy as np  # noqa: E402
import onnx.defs  # noqa: E402
import onnxruntime  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

from . import case as cases  # noqa: E402

ORT_OPSET = 26
ORT_TYPES = {"float", "double", "float16", "int8", "uint8", "int16", "uint16", "int32", "uint32",
             "int64", "uint64", "bool", "string"}


# Operators that opset 22 only widened, and onnxruntime has no kernel of since then.
UNTIL_21 = {"GlobalLpPool", "MaxRoiPool", "Multinomial", "RandomNormal", "RandomNormalLike",
            "RandomUniform", "RandomUniformLike", "RoiAlign"}


class NoPeer(Exception):
    pass


def _options():
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return options


OPTIONS = _options()
onnxruntime.set_default_logger_severity(4)


def native(case):
    """Every input and output type has a numpy form that onnxruntime takes."""
    texts = [cases.carrier(t) for t in [i.type for i in case.inputs] + case.output_types if t]
    return all(set(re.findall(r"\(([a-z0-9]+)\)|,|\(([a-z0-9]+),", t) and
                   re.findall(r"[a-z0-9]+", t)) - {"tensor", "seq", "optional", "map"}
               <= ORT_TYPES for t in texts)


def ort_opset(case):
    """The case's opset, or the newest that onnxruntime takes when the operator had these
    attributes then (the opsets after it mostly widen types)."""
    if case.domain or case.opset <= ORT_OPSET:
        return case.opset
    try:
        older = onnx.defs.get_schema(case.name, ORT_OPSET)
    except onnx.defs.SchemaError:
        raise NoPeer("newer than onnxruntime") from None
    if not set(case.attrs) <= set(older.attributes):
        raise NoPeer("newer than onnxruntime")
    return ORT_OPSET


def by_onnxruntime(case):
    if not native(case):
        raise NoPeer("a type without a numpy form")
    opset = ort_opset(case)
    if case.name in UNTIL_21 and opset > 21:
        opset = 21
    model, feeds = case.model(opset, carried=True)
    session = onnxruntime.InferenceSession(model.SerializeToString(), OPTIONS,
                                           providers=["CPUExecutionProvider"])
    results = bound(session, feeds, case.shared) if case.shared else session.run(None, feeds)
    return case.peer_after([cases.narrow(r, t) if cases.carrier(t) != t else r
                            for r, t in zip(results, case.wanted(), strict=True)])


def bound(session, feeds, shared):
    """A run whose outputs named in `shared` lie in the memory of an input."""
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


def by_formula(case):
    if case.formula is None:
        raise NoPeer("no formula")
    with np.errstate(all="ignore"):
        results = case.formula(*[i.value for i in case.inputs])[:len(case.wanted())]
    return [r if isinstance(r, list) else np.asarray(r).astype(cases.np_type(t[len("tensor("):-1]))
            for r, t in zip(results, case.wanted(), strict=True)]


def by_reference(case):
    model, feeds = case.model()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        results = ReferenceEvaluator(model).run(None, feeds)
    return case.peer_after([tidy(r, t) for r, t in
                            zip(results, case.wanted(), strict=True)])


def tidy(value, text):
    """Numpy's promotions undone: the number types that the operator declares, strings as objects;
    an optional without the list that the reference evaluator keeps it in."""
    if text.startswith("optional("):
        value = value[0] if isinstance(value, list) and len(value) == 1 else value
        text = text[len("optional("):-1]
    if isinstance(value, list | tuple):
        return [tidy(v, text) for v in value]
    if value is None:
        return None
    value = np.asarray(value)
    if value.dtype.kind in "US" or "string" in text:  # numpy's zeros of texts are numbers
        value = value.astype(object)
        value[value == 0] = ""
        return value
    declared = cases.np_type(re.findall(r"\w+", text)[-1])
    if value.dtype != declared and value.dtype.kind == declared.kind and value.dtype.kind in "iuf":
        return value.astype(declared)
    return value


PEERS = {"onnxruntime": by_onnxruntime, "formula": by_formula, "reference": by_reference}


def expected(case, names=None):
    """(peer, results in the declared types). Raises NoPeer with all reasons. Peer "float": the
    results of onnxruntime on the float form of a case in double, only that exact."""
    given, reasons = case, []
    for name in names or case.peers:
        case = given.for_peer(name)
        wide = case.promoted()
        for form in [wide, case] if wide else [case]:
            try:
                results = PEERS[name](form)
            except Exception as error:  # any refusal of a peer, in its own words
                reasons.append(f"{name}: {str(error).strip().splitlines()[-1:]}")
                continue
            return name, [cases.narrow(r, t) if form is wide else r
                          for r, t in zip(results, case.wanted(), strict=True)]
    case = given.for_peer("onnxruntime")
    if "onnxruntime" in (names or case.peers) and case.has_double():
        try:
            results = by_onnxruntime(case.in_float())
            return "float", [cases.in_double(r, t)
                             for r, t in zip(results, case.wanted(), strict=True)]
        except Exception as error:
            reasons.append(str(error).strip()[-200:])
    raise NoPeer("; ".join(reasons)[:600])
