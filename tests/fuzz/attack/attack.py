#!/usr/bin/env python3
"""Attack the tools: values, attributes, files and options that nobody means well with.

usage: attack.py SERVERS [--seed N] [--minutes M] [--only KIND,...] [--sweep attributes|values] [--keep DIR]

SERVERS holds a server (server.c) for each tool, best built with sanitizers. Kinds:
  values      the recorded inputs of ONNX's and our own operator tests, one of them empty, huge, of another
              rank or of extreme numbers; every level, tier and two threads
  attributes  the same models with an attribute at its end, an input left out, a rank unknown
  empties     likewise, with tensors of no elements beside it, given or in the model: loops over nothing
  chains      nodes of the operator tests behind one another, with such attributes, for the passes (chains.py)
  operations  the operations of ort-tensor at their extremes
  files       CSV, JSON, raw, npy and npz with bytes changed, cut, doubled; archives that unpack to gigabytes
  libraries   operator libraries that are none
  pictures    PNG, JPEG, WebP, BMP, TIFF, PNM, GIF and JPEG 2000, damaged (media.py, as the next ones)
  sounds      WAV whose header says anything
  stores      safetensors, npz, npy, pb, CSV and JSON, damaged; recorded sets of a model
  drawings    ort-draw on numbers of any shape and on damaged pictures
--sweep draws nothing: it goes through all of one kind, and takes as long as that takes (sweep.py).
A case fails when it dies of a signal, a sanitizer speaks, the exit status isn't 0 to 5, it takes more
than 10 seconds of a processor or more memory than it may. Failing cases are kept with their command.
The last line counts: cases, crashes, hangs, memory.
"""
import argparse
import io
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile

import numpy
import onnx
from onnx import numpy_helper

import chains
import media
import sweep

ROOT = pathlib.Path(__file__).resolve().parents[3]
SECONDS, MEGABYTES = 10, 3000
EXTREMES = [0, 1, -1, 2, 3, 7, 127, 255, 65535, 1 << 20, (1 << 31) - 1, -(1 << 31), 1 << 32, 1 << 62,
            (1 << 63) - 1, -(1 << 63)]
NODES = []  # of the operator tests, read when they are first wanted
ENDED = ("ERROR: AddressSanitizer", "runtime error", "SUMMARY: UndefinedBehavior")


class Servers:
    """One server a tool, started when it is first asked."""

    def __init__(self, folder, out):
        self.folder, self.out, self.running = folder, out, {}

    def run(self, cwd, tool, *arguments):
        if tool not in self.running or self.running[tool].poll() is not None:
            self.running[tool] = subprocess.Popen(
                [self.folder / tool, str(SECONDS), str(MEGABYTES)], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, text=True)
        server = self.running[tool]
        line = "\x1f".join([str(self.out), str(cwd), tool, *map(str, arguments)])
        server.stdin.write(line + "\n")
        server.stdin.flush()
        status, signal, ms, kb, kind = server.stdout.readline().split()
        said = self.out.read_text(errors="replace")
        return int(status), int(signal), float(ms), int(kb), kind, said


def judge(result):
    """What is wrong with it, or None."""
    status, signal, ms, _, kind, said = result
    if kind in ("hang", "memory"):
        return kind
    if any(word in said for word in ENDED) or signal or not 0 <= status <= 5:
        return "crash"
    return "hang" if ms > SECONDS * 1e3 else None


# ---- values and attributes

def recorded():
    """(model, folder of its recorded inputs) of every operator test that is here."""
    for place in (ROOT / "build/conformance", ROOT / "tests/onnx/contrib"):
        for model in sorted(place.glob("**/model.onnx")):
            sets = sorted(model.parent.glob("test_data_set_*"))
            if sets and model.stat().st_size < 1 << 20:
                yield model, sets[0]


def read_tensor(path):
    tensor = onnx.TensorProto()
    tensor.ParseFromString(path.read_bytes())
    return tensor


def extreme(rng, array):
    kind = array.dtype.kind
    if kind == "f":
        return numpy.full_like(array, rng.choice([numpy.inf, -numpy.inf, numpy.nan, 0, -0.0, 1e38, 1e-45]))
    if kind in "iu":
        info = numpy.iinfo(array.dtype)
        return numpy.full_like(array, rng.choice([info.min, info.max, 0, min(info.max, 1 << 40)]))
    return array


def mutate_value(rng, tensor):
    """Another tensor in its place, of the same element type."""
    try:
        array = numpy_helper.to_array(tensor)
    except Exception:  # types that numpy hasn't: their shape alone
        array = None
    made, how = onnx.TensorProto(), rng.choice(["empty", "empty", "rank", "many", "extreme", "zero_dim"])
    if array is None or array.dtype.kind not in "fiub" or how in ("empty", "zero_dim"):
        made.data_type, made.name = tensor.data_type, tensor.name
        dims = list(tensor.dims) or [0]
        if how == "zero_dim":
            dims[rng.randrange(len(dims))] = 0
        else:
            dims = [0]
        made.dims.extend(dims if 0 in dims else [0])
        return made
    if how == "rank":
        array = array.reshape((1,) + array.shape) if rng.random() < 0.5 else array.reshape(-1)
    elif how == "many":
        array = numpy.concatenate([array.reshape(-1)] * rng.choice([2, 3])) if array.size < 1 << 16 else array
    else:
        array = extreme(rng, array)
    return numpy_helper.from_array(numpy.ascontiguousarray(array), tensor.name)


def settings(rng, tiers):
    return ["--hash", "--level", rng.choice("0123"), "--isa", rng.choice(tiers), "--threads",
            rng.choice("12"), "--timeout", "6", "--max-memory", "1G", "-q"]


def inputs_of(model, folder):
    """(name, file) of the inputs that are recorded as tensors."""
    known = {t.name for t in model.graph.initializer}
    names = [i.name for i in model.graph.input if i.name not in known]
    names = names or [i.name for i in model.graph.input]
    files = sorted(folder.glob("input_*.pb"), key=lambda p: int(p.stem.split("_")[1]))
    return list(zip(names, files))


def values(rng, work, corpus, tiers):
    path, folder = rng.choice(corpus)
    given = inputs_of(onnx.load(str(path), load_external_data=False), folder)
    arguments = ["ort-run", path]
    chosen = rng.randrange(len(given)) if given else -1
    for i, (name, file) in enumerate(given):
        if i == chosen:
            try:
                made = mutate_value(rng, read_tensor(file))
            except Exception:  # a sequence or an optional: as it is
                made = None
            if made is not None:
                file = work / f"in{i}.pb"
                file.write_bytes(made.SerializeToString())
        arguments += ["-i", f"{name}={file}"]
    return arguments + settings(rng, tiers)


def mutate_node(rng, node):
    """One of its attributes at an end of the range, an input left out, or one too many."""
    ints = [a for a in node.attribute if a.type in (onnx.AttributeProto.INT, onnx.AttributeProto.INTS)]
    how = rng.choice(["attribute"] * 4 + ["absent", "extra"])
    if how == "attribute" and ints:
        a = rng.choice(ints)
        if a.type == onnx.AttributeProto.INT:
            a.i = rng.choice(EXTREMES)
        elif a.ints:
            a.ints[rng.randrange(len(a.ints))] = rng.choice(EXTREMES)
        if a.type == onnx.AttributeProto.INTS and rng.random() < 0.3:
            a.ints.extend([rng.choice(EXTREMES)] * rng.choice([1, 20]))
    elif how == "absent" and node.input:
        node.input[rng.randrange(len(node.input))] = ""
    elif how == "extra":
        node.input.append(node.input[0] if node.input else "")


def mutate_model(rng, model):
    if rng.random() < 0.8:
        return mutate_node(rng, rng.choice(list(model.graph.node)))
    for value in list(model.graph.input) + list(model.graph.output):
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")


def attributes(rng, work, corpus, tiers):
    path, folder = rng.choice(corpus)
    model = onnx.load(str(path), load_external_data=False)
    if not model.graph.node:
        return None
    for _ in range(rng.choice([1, 1, 2])):
        mutate_model(rng, model)
    mine = work / "m.onnx"
    mine.write_bytes(model.SerializeToString())
    tool = rng.choice(["ort-run"] * 3 + ["ort-optimize", "ort-inspect", "ort-profile"])
    if tool == "ort-profile":
        return [tool, mine, "--repeat", "2", "--warmup", "0", "--no-peak", "--timeout", "6",
                "--max-memory", "1G", rng.choice(["--json", "-q", "--by=node"])]
    if tool == "ort-inspect":
        return [tool, mine, rng.choice(["--check", "--nodes", "--costs", "--svg", "--memory"])]
    if tool == "ort-optimize":
        return [tool, mine, "-q", "-o", work / "o.onnx", "--timeout", "6", "--max-memory", "1G"]
    arguments = [tool, mine]
    for name, file in inputs_of(model, folder):
        arguments += ["-i", f"{name}={file}"]
    return arguments + settings(rng, tiers)


def empties(rng, work, corpus, tiers):
    path, folder = rng.choice(corpus)
    model = onnx.load(str(path), load_external_data=False)
    if not model.graph.node:
        return None
    given = []
    for name, file in inputs_of(model, folder):
        try:
            made = read_tensor(file)
        except Exception:  # a sequence or an optional: as it is
            given += ["-i", f"{name}={file}"]
            continue
        if rng.random() < 0.7 and made.dims:
            dims, kind = list(made.dims), made.data_type
            dims[rng.randrange(len(dims))] = 0
            made = onnx.TensorProto(dims=dims, data_type=kind)
        if rng.random() < 0.5:
            made.name = name
            model.graph.initializer.append(made)
        else:
            file = work / f"in{len(given)}.pb"
            file.write_bytes(made.SerializeToString())
            given += ["-i", f"{name}={file}"]
    for value in list(model.graph.input) + list(model.graph.output):
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    if rng.random() < 0.8:
        mutate_node(rng, rng.choice(list(model.graph.node)))
    (work / "m.onnx").write_bytes(model.SerializeToString())
    if rng.random() < 0.2:
        return ["ort-optimize", work / "m.onnx", "-q", "-o", work / "o.onnx", "--timeout", "6", "--max-memory", "1G"]
    return ["ort-run", work / "m.onnx"] + given + settings(rng, tiers)


def rewritten(rng, work, corpus, tiers):
    if not NODES:
        NODES.append(chains.Nodes(corpus, inputs_of, read_tensor))
    model, fed = chains.chain(rng, NODES[0], mutate_node, mutate_value)
    (work / "m.onnx").write_bytes(model.SerializeToString())
    (work / "x.pb").write_bytes(fed.SerializeToString())
    declared = model.graph.input[0].type.tensor_type.HasField("shape")
    return chains.arguments_for(rng, work / "m.onnx", work / "x.pb", work / "o.onnx", declared, tiers)


# ---- tensors and files

def operations(rng, work, corpus, tiers):
    shape = [rng.choice([0, 1, 2, 3, 5, 40]) for _ in range(rng.choice([0, 1, 2, 3, 3, 4]))]
    dtype = rng.choice(["f4", "u1", "i8", "f2", "?"])
    numpy.save(work / "x.npy", numpy.ones(shape, dtype))
    size = lambda: rng.choice(["0", "1", "3", "224", "1x1", "7x3", "2049x3", "1x16777216", "16777215x1",
                               "2x2+9+9", "3x3+-1+-1", "99999999999", "-1"])
    number = lambda: str(rng.choice(EXTREMES + [16, 15, -16]))
    listed = lambda: ",".join(number() for _ in range(rng.choice([1, 2, 3, 17])))
    part = lambda: rng.choice([number(), ":", f"{number()}:", f":{number()}", f"{number()}:{number()}:{number()}"])
    operation = rng.choice([
        ["--resize", size()], ["--crop", size()], ["--pad", size()], ["--letterbox", size()],
        ["--slice", ",".join(part() for _ in range(rng.choice([1, 2, 3, 17])))],
        ["--reshape", "x".join(number() for _ in range(rng.choice([1, 2, 3, 17])))],
        ["--transpose", listed()], ["--unsqueeze", listed()], ["--argmax", number()],
        ["--softmax", number()], ["--scale", f"{number()},{number()}"], ["--mean", listed()],
        ["--chunk", rng.choice(["0", "-1", "1", "3", "65535", "9223372036854775807"]), "--hop", number()], ["--rate", number()], ["--top", number()],
        ["--layout", rng.choice(["chw", "nchw", "hwc"])], ["--gray"], ["--squeeze"], ["--items", number()]])
    return ["ort-tensor", work / "x.npy", *operation] + (
        ["--print"] if rng.random() < 0.7 else ["-o", work / "y.npz"])


def archive(rng):
    """An .npz whose member claims, and may hold, gigabytes."""
    header = io.BytesIO()
    count = rng.choice([1 << 28, 1 << 31, 1 << 36, 1 << 62])
    text = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({count},), }}".ljust(117) + "\n"
    header.write(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode())
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z, z.open("a.npy", "w") as member:
        member.write(header.getvalue())
        for _ in range(min(count, rng.choice([0, 1 << 24, 1 << 27])) >> 24):
            member.write(bytes(1 << 24))
    return out.getvalue()


def texts(rng):
    cell = lambda: rng.choice(["1", "-0.5", "1e999", "nan", "", "a,b", '"', '"x""y"', "0x1p3", "é", "1" * 400])
    kind = rng.choice(["csv", "json", "raw", "npz", "npy"])
    if kind == "csv":
        rows = [rng.choice([",", ";", "\t"]).join(cell() for _ in range(rng.randrange(1, 6)))
                for _ in range(rng.randrange(0, 8))]
        return kind, rng.choice(["\n", "\r\n", "\r"]).join(rows).encode()
    if kind == "json":
        value = rng.choice(["[1,2]", "[[1],[2,3]]", '{"a":[1]}', '{"dtype":"float","shape":[2],"data":[1,2]}',
                            '{"dtype":"int64","shape":[9223372036854775807],"data":[]}', "[" * 3000, '"\\ud800"',
                            "[1e999,-1e999,null,true]", '{"dtype":"nope","shape":[-1],"data":[1]}'])
        return kind, value.encode()
    if kind == "npz":
        return kind, archive(rng)
    buffer = io.BytesIO()
    numpy.save(buffer, numpy.arange(12.0).reshape(3, 4))
    return kind, buffer.getvalue()


def files(rng, work, corpus, tiers):
    kind, data = texts(rng)
    name = work / f"f.{kind}"
    name.write_bytes(media.damage(rng, data))
    extra = ["--dtype", "float", "--dims", "x".join(str(rng.choice(EXTREMES)) for _ in range(2))]
    return ["ort-tensor", name, *(extra if kind == "raw" else []), "--print"]


def libraries(rng, work, corpus, tiers):
    real = ROOT / "build/lib/example_ops.so"
    content = real.read_bytes()[:rng.choice([0, 1, 64, 100, 4096])]
    library = work / "bad.so"
    library.write_bytes(rng.choice([content, b"text", bytes(4096)]))
    if rng.random() < 0.2:
        library = pathlib.Path(rng.choice(["/dev/null", "/", "nowhere.so", "libz.so.1", "libm.so.6"]))
    return ["ort-run", ROOT / "models/digits.onnx", "--random", "1", "--hash", "--ops-lib", library]


def given_as(inputs, changed=None, file=None):
    return [word for name, recorded in inputs
            for word in ("-i", f"{name}={file if name == changed else recorded}")]


def swept(rng, work, corpus, tiers, what):
    """The cases of a sweep, one after another."""
    for path, folder in corpus:
        model = onnx.load(str(path), load_external_data=False)
        inputs = inputs_of(model, folder)
        if what == "attributes":
            for made in sweep.attributes(rng, model):
                (work / "m.onnx").write_bytes(made.SerializeToString())
                yield ["ort-run", work / "m.onnx"] + given_as(inputs) + settings(rng, tiers)
            continue
        tensors = {v.name for v in model.graph.input if v.type.HasField("tensor_type")}
        for name, file in inputs:
            if name not in tensors: # an optional may read as a tensor, too
                continue
            tensor = read_tensor(file)
            for made in sweep.values(rng, tensor):
                (work / "changed.pb").write_bytes(made.SerializeToString())
                given = given_as(inputs, name, work / "changed.pb")
                yield ["ort-run", path] + given + settings(rng, tiers)


def drawn(rng, work, corpus, tiers, chosen, end):
    """Cases of the chosen kinds until the time has come."""
    while time.monotonic() < end:
        for old in work.iterdir():
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        kind = rng.choices(list(chosen), [weight for _, weight in chosen.values()])[0]
        arguments = chosen[kind][0](rng, work, corpus, tiers)
        if arguments is not None:
            yield arguments


KINDS = {"pictures": (media.pictures, 4), "sounds": (media.sounds, 2), "stores": (media.stores, 5),
         "drawings": (media.drawings, 2), "values": (values, 10), "attributes": (attributes, 8), "empties": (empties, 6),
         "chains": (rewritten, 10),
         "operations": (operations, 5),
         "files": (files, 4), "libraries": (libraries, 1)}


def keep(folder, number, work, arguments, what, result):
    place = folder / f"{what}-{number}"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(work, place)
    command = " ".join(str(a).replace(str(work), ".") for a in arguments)
    (place / "cmd").write_text(f"{command}\n{result[:5]}\n{result[5][:6000]}\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("servers", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--only", default=",".join(KINDS))
    parser.add_argument("--sweep", choices=["attributes", "values"])
    parser.add_argument("--keep", type=pathlib.Path, default=ROOT / "build/attack")
    options = parser.parse_args()
    rng, counts = random.Random(options.seed), {"crash": 0, "hang": 0, "memory": 0}
    corpus = list(recorded())
    chosen = {k: KINDS[k] for k in options.only.split(",")}
    cases, peak, seen, end = 0, 0, set(), time.monotonic() + 60 * options.minutes
    options.keep.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        work = pathlib.Path(scratch) / "work"
        servers = Servers(options.servers.resolve(), pathlib.Path(scratch) / "said")
        work.mkdir()
        tiers = [t for t in ("scalar", "avx2", "avx512", "vnni", "amx")
                 if servers.run(work, "ort-run", "--isa", t, "--settings")[0] == 0]
        made = (swept(rng, work, corpus, tiers, options.sweep) if options.sweep else
                drawn(rng, work, corpus, tiers, chosen, end))
        for arguments in made:
            result = servers.run(work, *arguments)
            cases, peak = cases + 1, max(peak, result[3])
            what = judge(result)
            if what is None:
                continue
            counts[what] += 1
            first = next((line for line in result[5].splitlines() if any(w in line for w in ENDED)), "")
            place = next((line.split(" in ")[1] for line in result[5].splitlines()
                          if line.lstrip().startswith("#") and "/lib/" in line and " in " in line), first)
            if place not in seen or not place:
                seen.add(place)
                print(f"not ok {what} ({arguments[0]}, seed {options.seed}, case {cases}): {place[:150]}", flush=True)
                keep(options.keep, f"{options.seed}-{cases}", work, arguments, what, result)
    print(f"{cases} cases, peak {peak // 1024} MB: {counts['crash']} crashes, {counts['hang']} hangs, "
          f"{counts['memory']} beyond memory")
    failed = sum(counts.values())
    print(f"{cases - failed} passed, {failed} failed, 0 skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
