#!/usr/bin/env python3
"""check_schema.py DUMP_PROGRAM - holds the operator registry against the ONNX specification.

Every row of the registry (domain, name, version) must have the signature, types and attributes that the
pinned onnx package's schemas have, in the notation of lib/op/op.h; no version that opset 6 or later can
reach may be missing between two that are there. Operators without any row are listed, not failed: the
coverage report counts them. Closes with "N passed, N failed, N skipped" (skipped: no row yet).
"""
import re
import subprocess
import sys

import onnx.defs

CODES = {"float": "f32", "double": "f64", "float16": "f16", "bfloat16": "bf16", "bool": "bool",
         "string": "str", "complex64": "c64", "complex128": "c128", "float8e4m3fn": "f8e4m3fn",
         "float8e4m3fnuz": "f8e4m3fnuz", "float8e5m2": "f8e5m2", "float8e5m2fnuz": "f8e5m2fnuz",
         "float8e8m0": "f8e8m0", "float4e2m1": "f4e2m1", "float6e2m3": "f6e2m3",
         "float6e3m2": "f6e3m2", "undefined": "any"}
for bits in (2, 4, 8, 16, 32, 64):
    CODES[f"int{bits}"] = f"i{bits}"
    CODES[f"uint{bits}"] = f"u{bits}"
GROUPS = {"F": "f16 f32 f64", "I": "i8 i16 i32 i64", "U": "u8 u16 u32 u64", "C": "c64 c128",
          "F8": "f8e4m3fn f8e4m3fnuz f8e5m2 f8e5m2fnuz", "F6": "f6e2m3 f6e3m2", "Q4": "i4 u4",
          "Q2": "i2 u2"}
KINDS = {"FLOAT": "f", "INT": "i", "STRING": "s", "TENSOR": "t", "GRAPH": "g", "FLOATS": "fs",
         "INTS": "is", "STRINGS": "ss", "TENSORS": "ts", "SPARSE_TENSOR": "sp", "TYPE_PROTO": "tp"}
WRAPPERS = {"seq": "seq", "optional": "opt", "sparse_tensor": "sparse"}
DOMAINS = ("", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training")
OPTION = onnx.defs.OpSchema.FormalParameterOption


def split(text):
    """Top-level commas."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [p for p in parts + [text[start:]] if p]


def code(text):
    """ONNX type string to our notation."""
    match = re.match(r"(tensor|seq|optional|map|sparse_tensor)\((.*)\)$", text.replace(" ", ""))
    if not match:
        return CODES.get(text, text)
    kind, body = match.groups()
    if kind == "tensor":
        return CODES[body]
    if kind == "map":
        key, value = body.split(",", 1)
        return f"map({CODES[key]},{code(value)})"
    return f"{WRAPPERS[kind]}({code(body)})"


def expand(text):
    """A type list in our notation to the set of single types."""
    out = set()
    for token in split(text):
        match = re.match(r"(seq|opt|sparse)\((.*)\)$", token)
        if token in GROUPS:
            out |= set(GROUPS[token].split())
        elif match:
            out |= {f"{match.group(1)}({t})" for t in expand(match.group(2))}
        else:
            out.add(token)
    return out


def parameter(p):
    mark = {OPTION.Single: "", OPTION.Optional: "?", OPTION.Variadic: "*"}[p.option]
    if p.option == OPTION.Variadic:
        mark += "" if p.is_homogeneous else "*"
        mark += "" if p.min_arity == 1 else str(p.min_arity)
    return f"{p.name}{mark}:{code(p.type_str)}"


def default(a):
    v = a.default_value
    fields = {1: lambda: f"={v.f:.9g}", 2: lambda: f"={v.i}", 3: lambda: "=" + v.s.decode(),
              6: lambda: "=[" + " ".join(f"{x:.9g}" for x in v.floats) + "]",
              7: lambda: "=[" + " ".join(map(str, v.ints)) + "]",
              8: lambda: "=[" + " ".join(x.decode() for x in v.strings) + "]"}
    return "!" if a.required else fields.get(v.type, lambda: "")()


def expected(schema):
    signature = ",".join(map(parameter, schema.inputs)) + " -> " + \
        ",".join(map(parameter, schema.outputs))
    types = {c.type_param_str: {code(t) for t in c.allowed_type_strs}
             for c in schema.type_constraints}
    attrs = {f"{k}:{KINDS[str(a.type).split('.')[-1]]}{default(a)}"
             for k, a in schema.attributes.items()}
    return signature.strip(), types, attrs


def attributes(text):
    return set(re.findall(r"[^ \[]+(?:\[[^\]]*\])?", text))


def foreign(rows):
    """Rows of ONNX's main domain that ONNX hasn't: the early and the withdrawn, which others run."""
    has = {(s.domain, s.name, s.since_version): s for s in onnx.defs.get_all_schemas_with_history()}
    dropped = {key for key, s in has.items() if s.deprecated}
    replaced = {("", "Scatter", 11), ("", "Upsample", 10)}      # nobody runs these
    return {key for key in rows if key[0] == "" and (key not in has or key in dropped)} - replaced


def main():
    dump = subprocess.run([sys.argv[1]], capture_output=True, text=True, check=True).stdout
    rows, extensions = {}, set()
    for line in dump.splitlines():
        domain, name, since, sig, types, attrs, deprecated, runs, extension = line.split("\t")
        rows[domain, name, int(since)] = (sig.strip(), types, attrs)
        if extension == "1":
            extensions.add((domain, name, int(since)))
    passed, failed, absent = 0, 0, set()
    for key in sorted(extensions ^ foreign(rows)):
        failed += 1
        print(f"not ok {key}: " + ("ONNX has it, it is no extension" if key in extensions else
                                   "ONNX hasn't it: its row needs ORT_TRAIT_EXTENSION"))
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain not in DOMAINS:
            continue
        key = (schema.domain, schema.name, schema.since_version)
        ours = rows.get(key)
        if ours is None:
            newer = [s for d, n, s in rows if (d, n) == key[:2]]
            reachable = schema.domain != "" or key[2] >= 6 or not any(6 >= s > key[2] for s in newer)
            if newer and reachable and not schema.deprecated:
                failed += 1
                print(f"not ok {key}: version missing")
            elif not newer:
                absent.add(key[:2])
            continue
        if schema.deprecated:
            passed += 1
            continue
        sig, types, attrs = expected(schema)
        have_types = {p.split(":", 1)[0]: expand(p.split(":", 1)[1]) for p in ours[1].split()}
        wrong = []
        if ours[0] != sig:
            wrong.append(f"signature {ours[0]} should be {sig}")
        for variable, allowed in types.items():
            if have_types.get(variable) != allowed:
                difference = sorted(allowed ^ have_types.get(variable, set()))
                wrong.append(f"types of {variable} differ in {difference}")
        if attributes(ours[2]) != attrs:
            wrong.append(f"attributes differ in {sorted(attributes(ours[2]) ^ attrs)}")
        passed += not wrong
        failed += bool(wrong)
        for text in wrong:
            print(f"not ok {key}: {text}")
    print("no row yet:", " ".join(sorted(n for d, n in absent)) or "none")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


sys.exit(main())
