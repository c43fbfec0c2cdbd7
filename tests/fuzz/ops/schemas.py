"""schemas.py - what a generator draws from: onnx's schemas, and for operators of com.microsoft and of
onnxruntime's own corner of the default domain those of the pinned onnxruntime, in the same form.

registry() is the list that the generators must cover: the operators of this build, as ort-inspect
names them.
"""
import dataclasses
import functools
import json
import pathlib
import subprocess

import onnx
import onnx.defs
from onnxruntime.capi import onnxruntime_pybind11_state as state

ROOT = pathlib.Path(__file__).resolve().parents[3]
MS, NCHWC, INTERNAL = "com.microsoft", "com.microsoft.nchwc", "ort.internal"
Option = onnx.defs.OpSchema.FormalParameterOption
OPTIONAL, VARIADIC = Option.Optional, Option.Variadic
OPTIONS = [Option.Single, OPTIONAL, VARIADIC]
NO_DEFAULT = onnx.AttributeProto()


@dataclasses.dataclass
class Parameter:
    name: str
    type_str: str
    option: object


@dataclasses.dataclass
class Attribute:
    required: bool
    default_value: onnx.AttributeProto


class Foreign:
    """A schema of onnxruntime in the words of onnx.defs; an attribute has no default here."""

    def __init__(self, own, domain=None, name=None):
        self.name, self.domain = name or own.name, own.domain if domain is None else domain
        self.since_version, self.deprecated = own.since_version, own.deprecated
        self.type_constraints = own.type_constraints
        self.inputs, self.outputs = ([Parameter(p.name, p.typeStr, OPTIONS[int(p.option)])
                                      for p in part] for part in (own.inputs, own.outputs))
        self.attributes = {k: Attribute(a.required, NO_DEFAULT) for k, a in own.attributes.items()}


@functools.cache
def foreign():
    found = {}
    for own in state.get_all_operator_schema():
        if own.domain in ("", MS, NCHWC):
            found.setdefault((own.domain, own.name), []).append(own)
    # The domain that onnxruntime's optimizer writes it into, and the one where it is documented.
    found[MS, "SimplifiedLayerNormalization"] = found["", "SimplifiedLayerNormalization"]
    return found


@functools.cache
def every_schema(domain, name):
    found = sorted((s for s in onnx.defs.get_all_schemas_with_history()
                    if (s.domain, s.name) == (domain, name)), key=lambda s: s.since_version)
    return found or [Foreign(s, domain) for s in foreign().get((domain, name), [])]


@functools.cache
def schemas(domain, name):
    """All schemas of an operator that some opset from 6 on uses, oldest first."""
    found = [s for s in every_schema(domain, name) if not s.deprecated]
    if domain:
        return found
    return [s for i, s in enumerate(found)
            if s.since_version >= 6 or i + 1 == len(found) or found[i + 1].since_version > 6]


def registry():
    """(domain, name) of every operator that this build runs."""
    text = subprocess.run([str(ROOT / "build/bin/ort-inspect"), "--supports", "--json"],
                          capture_output=True, text=True, check=True).stdout
    return {("" if o["domain"] == "ai.onnx" else o["domain"], o["op_type"])
            for o in json.loads(text)["operators"]}
