#!/usr/bin/env python3
"""check_shapes.py DUMP_PROGRAM FOLDER... - holds inferred types and shapes against two judges.

Every model of the folders (build/conformance, tests/onnx/contrib, real models) is inferred in several
forms: its inputs with the recorded shapes, as declared (where names are), with a name of its own for every
dimension, with unknown dimensions, with unknown rank; each of these again with its small inputs as constants. Every value must be

  - never less precise than onnx.shape_inference says (strict mode off; data propagation off and on):
    the type, the rank, each dimension that is a number or the name of an input's dimension;
  - never in contradiction with it, nor with the recorded outputs, where expressions are evaluated at the
    recorded shapes.

A recorded output judges: what onnx says against it counts as a defect of onnx (listed with --list
onnx). Names that onnx makes up for unknown dimensions (unk__N) say nothing.

One test is one model; it passes when all its forms do. Options: --filter GLOB, --forms NAME,...,
--list more|onnx|excepted|unmatched|silent (a line per value), --all. Closes with the counts over all values and
"N passed, N failed, N skipped".
"""
import argparse
import collections
import fnmatch
import json
import math
import pathlib
import re
import subprocess
import sys
from fractions import Fraction

import onnx
from onnx import TensorProto, shape_inference

FORMS = [shape + constants for constants in ("", "+constants")
         for shape in ("recorded", "declared", "symbolic", "open", "unranked")]
CONSTANT_MAX = 64      # elements of an input that becomes a constant

# Where being less precise than onnx is right: model, value, the form ("*": all), why. An entry that
# nothing needs any more is a failure of a whole run.
EXCEPTIONS = [
    ("test_affine_grid_3d*_expanded", "AffineGrid_*_then", "*",
     "the branch for 2-D grids, which a 3-D size never takes: 5 numbers can't be split in 4 parts; "
     "onnx gives the parts 2, 2, 2 and -1 numbers"),
    ("test_affine_grid_3d*_expanded", "AffineGrid_*_grid_squeezed", "*",
     "the same branch: the axis it removes is not 1"),
    ("test_einsum_batch_matmul*", "z", "symbolic",
     "axes of two inputs under one letter broadcast (numpy, onnxruntime: [1,2,3] and [5,3,4] by "
     "'bij, bjk -> bik' give 5), onnx takes the name of the first for the result"),
    ("silero_vad", "If_0_else_branch*", "recorded*",
     "the branch for 8 kHz, which a chunk of 16 kHz never takes: what it computes there contradicts"),
]

USED = set()

# Operators whose output sizes depend on the data, or on the items of a sequence (which may have many
# shapes): their tests may leave a dim of an output open.
BY_DATA = {"BeamSearch", "BifurcationDetector", "Compress", "ConcatFromSequence",
           "DynamicTimeWarping", "ImageDecoder", "Loop", "NonMaxSuppression", "NonZero",
           "Sampling", "SequenceAt", "StringNormalizer", "StringSplit", "Tokenizer", "Unique",
           "WhisperBeamSearch"}

# A type is (kind, ...): tensor and sparse (kind, dtype, dims or None), seq and opt (kind, type or
# None), map (kind, key, type). A dim is an int, a text (name or expression) or None.
DTYPES = {v: k.lower() for k, v in TensorProto.DataType.items()}


# ---- types of onnx

def dim_of(d):
    if d.HasField("dim_value"):
        return d.dim_value
    return d.dim_param or None if not d.dim_param.startswith("unk__") else None


def type_of(t):
    kind = t.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        body = getattr(t, kind)
        dims = [dim_of(d) for d in body.shape.dim] if body.HasField("shape") else None
        dtype = DTYPES[body.elem_type] if body.elem_type else None
        return ("tensor" if kind == "tensor_type" else "sparse", dtype, dims)
    if kind == "sequence_type":
        return ("seq", type_of(t.sequence_type.elem_type))
    if kind == "optional_type":
        return ("opt", type_of(t.optional_type.elem_type))
    if kind == "map_type":
        return ("map", DTYPES[t.map_type.key_type], type_of(t.map_type.value_type))
    return None


# ---- types of ours: "float[a,2*b]", "seq(map(string,float[]))", "?"

def split(text):
    """Top-level commas."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return parts + [text[start:]] if text else []


def parse_dim(text):
    return None if text == "?" else int(text) if re.fullmatch(r"-?\d+", text) else text


def parse_type(text):
    if text == "?":
        return None
    for word, kind in (("seq(", "seq"), ("optional(", "opt"), ("sparse(", "sparse")):
        if text.startswith(word):
            inner = parse_type(text[len(word):-1])
            return ("sparse", *inner[1:]) if kind == "sparse" else (kind, inner)
    if text.startswith("map("):
        key, value = split(text[4:-1])
        return ("map", key, parse_type(value))
    dtype, dims = text[:-1].split("[", 1)
    return ("tensor", None if dtype == "?" else dtype,
            None if dims == "..." else [parse_dim(d) for d in split(dims)])


def show(t):
    if t is None:
        return "?"
    if t[0] in ("tensor", "sparse"):
        dims = "..." if t[2] is None else ",".join("?" if d is None else str(d) for d in t[2])
        return f"{t[1]}[{dims}]"
    return f"{t[0]}({', '.join(x if isinstance(x, str) else show(x) for x in t[1:])})"


# ---- values of dims

def evaluate(dim, env):
    """The number that a dim has where every name has its recorded size; None when it can't be told."""
    if dim is None or isinstance(dim, int):
        return dim
    names = {"floor": math.floor, "ceil": math.ceil, "max": max, "min": min}
    names |= {k: Fraction(v) for k, v in env.items()}
    try:
        return int(eval(dim, {"__builtins__": {}}, names))  # names and arithmetic of our own text
    except (NameError, SyntaxError, ZeroDivisionError):
        return None


# ---- comparing

FAILURES = {"less", "contradiction", "against", "refused", "incomplete"}
ORDER = ["equal", "more", "less", "contradiction"]


def worst(verdicts):
    return max(verdicts, key=ORDER.index, default="equal")


def compare_dim(ours, theirs, env):
    if theirs is None:
        return "equal" if ours is None else "more"
    if ours is None:
        return "less"
    if ours == theirs:
        return "equal"
    if evaluate(ours, env) != evaluate(theirs, env):
        return "contradiction"
    return "less" if isinstance(theirs, int) else "more" if isinstance(ours, int) else "equal"


def compare(ours, theirs, env):
    if theirs is None:
        return "equal" if ours is None else "more"
    if ours is None:
        return "less"
    if ours[0] != theirs[0]:
        return "contradiction"
    if ours[0] == "map":
        return "contradiction" if ours[1] != theirs[1] else compare(ours[2], theirs[2], env)
    if ours[0] in ("seq", "opt"):
        return compare(ours[1], theirs[1], env)
    found = []
    if ours[1] != theirs[1]:
        found.append("less" if ours[1] is None else "more" if theirs[1] is None
                     else "contradiction")
    if ours[2] is None or theirs[2] is None:
        found.append("equal" if ours[2] == theirs[2] else "less" if ours[2] is None else "more")
    elif len(ours[2]) != len(theirs[2]):
        found.append("contradiction")
    else:
        found += [compare_dim(a, b, env) for a, b in zip(ours[2], theirs[2])]
    return worst(found)


def agrees(said, actual, env):
    """Does what was said before the run hold for what came out?"""
    if said is None or actual is None:
        return True
    if said[0] == "opt" and actual[0] != "opt":
        return agrees(said[1], actual, env)
    if said[0] != actual[0]:
        return False
    if said[0] == "map":
        return said[1] == actual[1] and agrees(said[2], actual[2], env)
    if said[0] in ("seq", "opt"):
        items = actual[1] if isinstance(actual[1], list) else [actual[1]]
        return all(agrees(said[1], item, env) for item in items)
    if said[1] not in (None, actual[1]):
        return False
    if said[2] is None or actual[2] is None:
        return True
    if len(said[2]) != len(actual[2]):
        return False
    values = [evaluate(d, env) for d in said[2]]
    return all(v is None or v == a for v, a in zip(values, actual[2]))


# ---- recorded values

def recorded_type(path, declared):
    """The type of a recorded value; the items of a sequence stand in a list."""
    if path.suffix == ".json":
        return None
    kind = declared.WhichOneof("value") if declared else "tensor_type"
    inner = declared.optional_type.elem_type if kind == "optional_type" else None
    data = path.read_bytes()
    if kind == "optional_type":
        value = onnx.OptionalProto.FromString(data)
        if value.HasField("tensor_value"):
            return ("opt", tensor_type(value.tensor_value))
        if value.HasField("sequence_value"):
            return ("opt", sequence_type(value.sequence_value))
        return None
    if kind == "sequence_type" or inner and inner.WhichOneof("value") == "sequence_type":
        return sequence_type(onnx.SequenceProto.FromString(data))
    return tensor_type(TensorProto.FromString(data))


def tensor_type(t):
    return ("tensor", DTYPES[t.data_type], list(t.dims))


def sequence_type(value):
    return ("seq", [tensor_type(t) for t in value.tensor_values])


def recorded(folder, prefix, ports):
    found = {}
    for k, port in enumerate(ports):
        for suffix in (".pb", ".json"):
            path = folder / f"{prefix}_{k}{suffix}"
            if path.exists():
                found[port.name] = path, recorded_type(path, port.type)
    return found


# ---- forms of a model

def each_tensor(t):
    """The tensor types in a TypeProto."""
    kind = t.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        yield getattr(t, kind)
    elif kind in ("sequence_type", "optional_type"):
        yield from each_tensor(getattr(t, kind).elem_type)
    elif kind == "map_type":
        yield from each_tensor(t.map_type.value_type)


def bodies_of(node):
    for a in node.attribute:
        yield from ([a.g] if a.HasField("g") else []) + list(a.graphs)


def strip(graph, top=True):
    """Forget what the file says about values that inference is to find."""
    del graph.value_info[:]
    for port in graph.output:
        if top:
            port.ClearField("type")
    for port in graph.output if not top else ():
        for t in each_tensor(port.type):
            t.ClearField("shape")
    for port in graph.input if not top else ():
        for t in each_tensor(port.type):
            t.ClearField("shape")
    for node in graph.node:
        for body in bodies_of(node):
            strip(body, False)


def inputs_of(model):
    constants = {t.name for t in model.graph.initializer}
    return [i for i in model.graph.input if i.name not in constants]


def small_inputs(graph, values):
    """Inputs whose recorded value is a scalar or a short list."""
    kinds = [(port, values.get(port.name, (None, None))[1]) for port in graph.input]
    return [port for port, kind in kinds if kind and kind[0] == "tensor" and len(kind[2]) < 2 and
            math.prod(kind[2]) <= CONSTANT_MAX]


def make_constants(graph, values):
    """Small recorded inputs become initializers. Returns whether there were any."""
    ports = small_inputs(graph, values)
    for port in ports:
        tensor = TensorProto.FromString(values[port.name][0].read_bytes())
        tensor.name = port.name
        graph.initializer.append(tensor)
        graph.input.remove(port)
    return bool(ports)


def reshape_input(k, port, actual, form, env):
    """Sizes of the names go into env; where nothing is recorded, some size, the same for one name."""
    known = actual[2] if actual and actual[0] == "tensor" else None
    for n, t in enumerate(each_tensor(port.type)):
        if form == "unranked":
            t.ClearField("shape")
            continue
        if not t.HasField("shape"):
            continue
        sizes = known if known is not None and len(known) == len(t.shape.dim) else \
            [dim_of(d) for d in t.shape.dim]
        for i, (d, size) in enumerate(zip(t.shape.dim, sizes)):
            said = d.dim_value if d.HasField("dim_value") else d.dim_param or None
            d.Clear()
            name = "s_" + re.sub(r"\W", "_", said) if isinstance(said, str) else None
            if not isinstance(size, int):
                size = said if isinstance(said, int) else env.get(name, 1000 + 7 * len(env))
            if form == "symbolic":
                d.dim_param = f"d{k}_{n}_{i}"
                env[d.dim_param] = size
            elif form == "recorded" and known is not None or isinstance(said, int):
                if form != "open":
                    d.dim_value = size
            elif form != "open" and name:
                d.dim_param = name
                env.setdefault(name, size)


def make_form(model, form, values):
    """The model in this form and the sizes of its names; None when the form is one before it."""
    shape, _, constants = form.partition("+")
    out, env = onnx.ModelProto(), {}
    out.CopyFrom(model)
    strip(out.graph)
    if constants and not make_constants(out.graph, values):
        return None, env
    names = any(d.dim_param for i in inputs_of(out) for t in each_tensor(i.type)
                for d in t.shape.dim)
    if shape == "declared" and not names:  # as recorded
        return None, env
    for k, port in enumerate(inputs_of(out)):
        actual = values.get(port.name, (None, None))[1]
        # Items of a sequence may have many sizes: what names stand for there can't be evaluated.
        many = port.type.WhichOneof("value") not in ("tensor_type", "sparse_tensor_type")
        reshape_input(k, port, actual, shape, dict(env) if many else env)
    return out, env


# ---- inference, theirs and ours

def numbered(found):
    """Lists by name to one table; bodies may use a name again, which gets "#1", "#2"."""
    return {name if k == 0 else f"{name}#{k}": item
            for name, items in found.items() for k, item in enumerate(items)}



def theirs(model, data_prop):
    try:
        inferred = shape_inference.infer_shapes(model, check_type=False, strict_mode=False,
                                                data_prop=data_prop)
    except Exception as error:  # a model that onnx refuses judges nothing
        return {}, str(error)
    found = collections.defaultdict(list)

    def walk(graph):
        here = {v.name: type_of(v.type) for v in (*graph.value_info, *graph.output)}
        for name in dict.fromkeys(n for node in graph.node for n in node.output):
            found[name].append(here.get(name))
        for node in graph.node:
            for body in bodies_of(node):
                walk(body)
    walk(inferred.graph)
    return numbered(found), None


class Dumper:
    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def infer(self, model):
        """Types by name, and what our check calls an error."""
        data = model.SerializeToString()
        self.process.stdin.write(b"%d\n" % len(data) + data)
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit("check_shapes: the dump program died")
        text = self.process.stdout.read(int(line)).decode()
        report, *errors = re.split(r"^!", text, flags=re.M)
        found = collections.defaultdict(list)
        for v in json.loads(report)["values"] if report else []:
            found[v["name"]].append((v["role"], parse_type(v["type"])))
        return numbered(found), [e.strip() for e in errors]


# ---- one model

class Count:
    def __init__(self):
        self.values = collections.Counter()
        self.lines = []

    def add(self, verdict, line):
        self.values[verdict] += 1
        self.lines.append((verdict, line))


def excepted(label, name):
    model, form = re.match(r"(\S+) \((\w+)", label).groups()
    for k, (models, values, forms, _) in enumerate(EXCEPTIONS):
        if fnmatch.fnmatch(model, models) and fnmatch.fnmatch(name, values) and \
                fnmatch.fnmatch(form, forms):
            USED.add(k)
            return True
    return False


def check_values(label, ours, said, actual, env, count):
    """What onnx says of each value against what we say; returns the number of failures."""
    failed = 0
    for name, their in said.items():
        if their is None:
            continue
        if name not in ours:
            count.add("unmatched", f"{label} '{name}': onnx {show(their)}")
            continue
        role, our = ours[name]
        line = f"{label} {role} '{name}': ours {show(our)}, onnx {show(their)}"
        if not agrees(their, actual.get(name), env):
            count.add("onnx", f"{line}, recorded {actual_text(actual[name])}")
            continue
        verdict = compare(our, their, env)
        if verdict == "less" and excepted(label, name):
            verdict = "excepted"
        count.add(verdict, line)
        failed += verdict in FAILURES
    return failed


def actual_text(t):
    return f"seq{[show(i) for i in t[1]]}" if t[0] == "seq" and isinstance(t[1], list) else show(t)


def complete(t):
    if t is None or t[0] not in ("tensor", "sparse"):
        return t is not None and t[-1] is not None  # items of a sequence may have many shapes
    return None not in (t[1], t[2]) and None not in t[2]


def check_complete(label, ours, outputs, count):
    """With the shapes of all inputs and the values of the small ones at hand nothing may stay unknown but
    what depends on the data. Returns the number of failures."""
    failed = 0
    for name in outputs:
        role, our = ours.get(name, (None, None))
        if role is not None and role not in BY_DATA and not complete(our):
            count.add("incomplete", f"{label} {role} '{name}': ours {show(our)}")
            failed += 1
    return failed


def check_recorded(label, ours, actual, env, count):
    failed = 0
    for name, kind in actual.items():
        if name not in ours:
            continue
        role, our = ours[name]
        good = agrees(our, kind, env)
        count.add("recorded" if good else "against",
                  f"{label} {role} '{name}': ours {show(our)}, recorded {actual_text(kind)}"
                  if kind else label)
        failed += not good
    return failed


def check_model(dumper, path, name, forms, count):
    model = onnx.load(path, load_external_data=False)
    data = path.parent / "test_data_set_0"
    values = recorded(data, "input", inputs_of(model))
    outputs = recorded(data, "output", model.graph.output)
    actual = {name: kind for name, (_, kind) in outputs.items() if kind}
    full = "recorded+constants" if small_inputs(model.graph, values) else "recorded"
    failed = 0
    for form in forms:
        made, env = make_form(model, form, values)
        if made is None:
            continue
        label = f"{name} ({form})"
        ours, errors = dumper.infer(made)
        for error in errors:
            count.add("refused", f"{label}: {error}")
        failed += len(errors) + check_recorded(label, ours, actual, env, count)
        if form == full:
            failed += check_complete(label, ours, actual, count)
        for data_prop in (False, True):
            said, why = theirs(made, data_prop)
            if why:
                count.add("silent", f"{label}: onnx refuses: {why}")
            mark = f"{label[:-1]}+data)" if data_prop else label
            failed += check_values(mark, ours, said, actual, env, count)
    return failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("--filter", default="*")
    parser.add_argument("--forms", default=",".join(FORMS))
    parser.add_argument("--all", action="store_true", help="an unused exception is a failure")
    parser.add_argument("--list", default="", help="verdicts to print a line for")
    options = parser.parse_args()
    dumper, count, passed, failed = Dumper(options.program), Count(), 0, 0
    shown = FAILURES | set(options.list.split(","))
    for folder in options.folders:
        for path in sorted([*folder.glob("*/model.onnx"), *folder.glob("*.onnx")]):
            name = path.parent.name if path.name == "model.onnx" else path.stem
            if not fnmatch.fnmatch(name, options.filter):
                continue
            count.lines.clear()
            bad = check_model(dumper, path, name, options.forms.split(","), count)
            passed, failed = passed + (not bad), failed + bool(bad)
            for verdict, line in count.lines:
                if verdict in shown:
                    print("not ok" if verdict in FAILURES else "note", f"{verdict}: {line}")
    for k, (models, values, _, _) in enumerate(EXCEPTIONS):
        if k not in USED and options.all:
            failed += 1
            print(f"not ok the exception for '{values}' of '{models}' is needed no more: remove it")
    print("values: " + ", ".join(f"{n} {v}" for v, n in sorted(count.values.items())))
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
