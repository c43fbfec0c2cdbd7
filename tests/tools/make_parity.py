#!/usr/bin/env python3
"""Make the files of `make parity`: models as onnxruntime's own tools write them, and its results.

usage: make_parity.py [--only GLOB] [--kinds LIST] [--output DIR] MODELS_DIR [TOPOLOGIES_DIR]

A row is a model and a kind: saved by onnxruntime at a level (basic, extended, all), quantized by
onnxruntime.quantization (dynamic; qdq, qdq_s8, qoperator: static with a reduced range, calibrated on
the samples beside the model; int4, int4_qdq: weights alone) or converted to float16 (fp16). Its folder
OUTPUT/MODEL.KIND has the form of MODELS_DIR: model.onnx, test_data_set_N with the inputs and what
onnxruntime with its default options computes from that very file, meta.json with the tolerance.
Where its tools can't make the file, have nothing to change in it, or can't run it, the folder holds
their message in refused.txt instead.

Where the default run and an unoptimized run of onnxruntime on the same file differ by more than the
tolerance, the values are those of the unoptimized run, which computes node by node what the
specification says (the default run merges quantized nodes with other roundings); meta.json and the
table say so.

Where moving constants and inputs by one unit in the last place moves onnxruntime's own unoptimized
values by more than the tolerance, a difference up to that movement, or up to the distance of the
default run where that is larger, is allowed, and the table says so in rows that need it; a quantized file then has a second row MODEL.KIND.parts, cut at its quantized values, with the
tolerance as below (parity_stability.py). Where a float16 file is further than its tolerance from the
float model it was made of, the values are those of that model, and onnxruntime's distance is allowed:
how near to it a runtime comes says more than which roundings it shares.

A folder that is complete for the same model, recipe and onnxruntime is left alone. Each row is made
in a process of its own, so that a crash of a tool ends only its row.

Tolerances, of each output (rtol times its value is added where the row is not of int8):
  float   the model's own of meta.json; a topology: 1e-5 of the largest output
  fp16    1e-2 of the largest output, as for the float16 model among the models
  int8    one step of the output's scale for 99.9 % of the elements; the scale is that of the
          DequantizeLinear or QLinear node that ends in the output, else the one that
          DynamicQuantizeLinear would choose for it: (max - min) / 255, with 0 in the range
"""
import argparse
import fnmatch
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import sys
import time

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
from onnx import TensorProto, numpy_helper  # noqa: E402
from onnxruntime import quantization  # noqa: E402
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer  # noqa: E402
from onnxruntime.tools.onnx_model_utils import update_onnx_opset  # noqa: E402
from onnxruntime.transformers import float16  # noqa: E402
from parity_stability import all_graphs, cuts, in_parts, movement, with_outputs  # noqa: E402

RECIPE = 4  # raise it when files that are there must be made again
LEVELS = {"basic": "ORT_ENABLE_BASIC", "extended": "ORT_ENABLE_EXTENDED", "all": "ORT_ENABLE_ALL"}
KINDS = [*LEVELS, "dynamic", "qdq", "qdq_s8", "qoperator", "int4", "int4_qdq", "fp16"]
# Of the topologies: saved levels of all but the two largest, and the quantizers on one of each sort.
LARGE = {"bert_base": ["extended", "int4"], "gpt2_past": ["all"]}
QUANTIZED = ("mobilenet_v2", "minilm_l6_v2", "squeezenet1_1")
LIMIT_SECONDS = 900
INTEGER_OPS = re.compile("QuantizeLinear|DynamicQuantize|QLinear|QGemm|MatMulInteger|ConvInteger|"
                         "QAttention|QEmbed")
MOVES = {"Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze", "Identity", "ReorderOutput"}


class Refused(Exception):
    """onnxruntime's tools can't do it; the text is their reason."""


# ---- values

def read_tensor(path):
    tensor = TensorProto.FromString(path.read_bytes())
    array = numpy_helper.to_array(tensor)
    if tensor.data_type == TensorProto.STRING:
        array = np.array([s.decode() if isinstance(s, bytes) else s for s in array.ravel()],
                         object).reshape(array.shape)
    return array


def read_map(path, kind):
    text_keys = "map(string" in kind
    return {k if text_keys else int(k): v for k, v in json.loads(path.read_text()).items()}


def feed_names(model):
    """Graph inputs that need a value, in order."""
    filled = {i.name for i in model.graph.initializer}
    return [i for i in model.graph.input if i.name not in filled]


def read_sets(folder, model):
    """The samples of a model: a list of {input name: value}."""
    names = feed_names(model)
    if (folder / "inputs.npz").exists():
        with np.load(folder / "inputs.npz") as file:
            return [{i.name: file[i.name] for i in names}]
    sets = []
    while (data := folder / f"test_data_set_{len(sets)}").exists():
        feeds = {}
        for k, value in enumerate(names):
            path = data / f"input_{k}.pb"
            if path.exists():
                feeds[value.name] = read_tensor(path)
            else:
                text = value.type.map_type.key_type == TensorProto.STRING
                feeds[value.name] = read_map(data / f"input_{k}.json", "map(string" if text else "")
        sets.append(feeds)
    return sets


def write_value(folder, stem, name, value):
    if isinstance(value, (dict, list)):
        (folder / f"{stem}.json").write_text(json.dumps(value, default=float) + "\n")
    elif value is not None:
        tensor = numpy_helper.from_array(np.asarray(value), name)
        (folder / f"{stem}.pb").write_bytes(tensor.SerializeToString())


# ---- making the file of a row

def open_session(path, level="ORT_ENABLE_ALL", save=None):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    options.log_severity_level = 4
    if save:
        options.optimized_model_filepath = str(save)
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


class Samples(quantization.CalibrationDataReader):
    def __init__(self, sets):
        self.sets, self.at = sets, 0

    def get_next(self):
        self.at += 1
        return self.sets[self.at - 1] if self.at <= len(self.sets) else None

    def rewind(self):
        self.at = 0


def quantize_static(source, target, sets, form, activations, per_channel):
    quantization.quantize_static(
        str(source), str(target), Samples(sets), quant_format=form, per_channel=per_channel,
        reduce_range=True, activation_type=activations, weight_type=quantization.QuantType.QInt8)


def default_opset(model):
    return max((i.version for i in model.opset_import if i.domain in ("", "ai.onnx")), default=0)


def quantize_int4(source, target, form):
    model = onnx.load(str(source))
    if form == quantization.QuantFormat.QDQ and default_opset(model) in range(1, 21):
        newer = target.with_name("opset21.onnx")  # the first with 4-bit types
        update_onnx_opset(source, 21, newer)
        model = onnx.load(str(newer))
        newer.unlink()
    quantizer = MatMulNBitsQuantizer(model, block_size=32, quant_format=form)
    quantizer.process()
    quantizer.model.save_model_to_file(str(target), False)


def make_file(kind, source, target, sets):
    forms, types = quantization.QuantFormat, quantization.QuantType
    if kind in LEVELS:
        open_session(source, LEVELS[kind], target)
    elif kind == "dynamic":
        quantization.quantize_dynamic(str(source), str(target))
    elif kind == "qdq":
        quantize_static(source, target, sets, forms.QDQ, types.QUInt8, False)
    elif kind == "qdq_s8":
        quantize_static(source, target, sets, forms.QDQ, types.QInt8, True)
    elif kind == "qoperator":
        quantize_static(source, target, sets, forms.QOperator, types.QUInt8, False)
    elif kind in ("int4", "int4_qdq"):
        quantize_int4(source, target, forms.QDQ if kind == "int4_qdq" else forms.QOperator)
    else:
        onnx.save(float16.convert_float_to_float16(onnx.load(str(source)), keep_io_types=True),
                  str(target))


# ---- what a file holds

def count_nodes(model):
    return sum(node.op_type != "Constant" for g in all_graphs(model.graph) for node in g.node)


def traces(model, kind):
    """How much of a kind's work is in a model: nodes or tensors that only its tool writes."""
    nodes = [node for graph in all_graphs(model.graph) for node in graph.node]
    if kind == "fp16":
        return sum(t.data_type == TensorProto.FLOAT16
                   for g in all_graphs(model.graph) for t in g.initializer) + sum(
            a.name == "to" and a.i == TensorProto.FLOAT16 for n in nodes for a in n.attribute)
    if kind in ("int4", "int4_qdq"):
        return sum(n.op_type in ("MatMulNBits", "DequantizeLinear") for n in nodes)
    return sum(bool(INTEGER_OPS.match(n.op_type)) for n in nodes)


def output_scale(model, name, array):
    """One step of output `name`: see the head of this file."""
    if array.dtype in (np.int8, np.uint8):
        return 1.0
    if array.dtype.kind != "f":
        return 0.0
    makers = {o: node for node in model.graph.node for o in node.output}
    constants = {t.name: t for t in model.graph.initializer}
    while name in makers and makers[name].op_type in MOVES:
        name = makers[name].input[0]
    node = makers.get(name)
    if node and node.op_type == "DequantizeLinear" and node.input[1] in constants:
        scale = numpy_helper.to_array(constants[node.input[1]])
        if scale.size == 1:
            return float(scale.ravel()[0])
    finite = array[np.isfinite(array)].astype(np.float64)
    return float(max(finite.max(initial=0), 0) - min(finite.min(initial=0), 0)) / 255


def numbers(value):
    """A value as an array; the numbers of maps one after the other; None for text."""
    if isinstance(value, dict):
        value = [value]
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return np.array([list(one.values()) for one in value], np.float32)
    return value if isinstance(value, np.ndarray) and value.dtype.kind in "fiub" else None


def tolerances(model, kind, own, results):
    """The part of meta.json that says how close the outputs must be. `own`: the model's meta."""
    arrays = [numbers(value) for _, value in results]
    largest = [float(np.abs(a[np.isfinite(a)]).max(initial=0)) if a is not None and
               a.dtype.kind == "f" else 0.0 for a in arrays]
    atol = own.get("atol")
    if kind != "fp16" and traces(model, "dynamic"):
        each = [0.0 if a is None else output_scale(model, name, a) * 1.0001
                for (name, _), a in zip(results, arrays, strict=True)]
        return {"rtol": 0, "atol": max(each), "atols": each, "share": 0.999}
    if kind == "fp16":
        each = [max(1e-2 * top, atol or 0) for top in largest]
    else:
        each = [1e-5 * top if atol is None else atol for top in largest]
    return {"rtol": own.get("rtol", 1e-3), "atol": max(each), "atols": each}


def distance(results, others, meta):
    """The largest difference in tolerances, and whether it is within what meta.json allows."""
    worst, agree = 0.0, True
    for one, other, atol in zip(results, others, meta["atols"], strict=True):
        a, b = numbers(one), numbers(other)
        if a is None or a.shape != b.shape:
            agree = agree and str(one) == str(other)
            continue
        a, b = a.astype(np.float64), b.astype(np.float64)
        off = np.abs(a - b)
        off[(a == b) | (np.isnan(a) & np.isnan(b))] = 0
        excess = off / np.maximum(atol + meta["rtol"] * np.abs(b), 1e-30)
        worst = max(worst, float(excess.max(initial=0)))
        agree = agree and np.mean(excess > 1) <= 1 - meta.get("share", 1) if a.size else agree
    return worst, bool(agree)


# ---- one row

def run_all(path, sets, level="ORT_ENABLE_ALL"):
    """The names of inputs and outputs, and the outputs for every set."""
    session = open_session(path, level)
    names = [i.name for i in session.get_inputs()]
    return (names, [o.name for o in session.get_outputs()],
            [session.run(None, {k: feeds[k] for k in names}) for feeds in sets])


def choose(meta, results, plain):
    """The expected values: the default run's, or the unoptimized ones where those differ."""
    found = [distance(a, b, meta) for a, b in zip(results, plain, strict=True)]
    if all(agree for _, agree in found):
        return results
    worst = max(far for far, _ in found)
    meta["note"] = f"unoptimized values; the default run is {worst:.3g} tolerances from them"
    meta["own"] = worst
    return plain


def widen(meta, far, note):
    """Allow `far` tolerances."""
    meta["atols"] = [x * far * 1.0001 for x in meta["atols"]]
    meta["rtol"], meta["atol"] = meta["rtol"] * far * 1.0001, max(meta["atols"])
    meta["note"] = note + ("; " + meta["note"] if "note" in meta else "")


def take_float(meta, results, source, sets):
    """For a float16 file: the values to compare with, those of its float model where it is far."""
    exact = run_all(source, sets, "ORT_DISABLE_ALL")[2]
    found = [distance(a, b, meta) for a, b in zip(results, exact, strict=True)]
    if all(agree for _, agree in found):
        return results
    far = max(far for far, _ in found)
    widen(meta, far, f"values of the float model, from which onnxruntime is {far:.3g} tolerances")
    return exact


def allow_movement(meta, target, sets):
    """Note onnxruntime's own movement where it is beyond the tolerance; whether it is. Two of its own
    runs that are further apart than that are movement as well."""
    own = meta.pop("own", 0)
    far, agree = movement(target, target.with_name("moved.onnx"), sets,
                          run_all(target, sets, "ORT_DISABLE_ALL")[2],
                          lambda path, feeds: run_all(path, feeds, "ORT_DISABLE_ALL")[2],
                          lambda a, b: distance(a, b, meta))
    if agree:
        return False
    meta["allow"] = max(far, own) * 1.0001
    return True


def write_sets(work, names, labels, sets, values):
    for at, (feeds, results) in enumerate(zip(sets, values, strict=True)):
        data = work / f"test_data_set_{at}"
        data.mkdir(parents=True)
        for k, name in enumerate(names):
            write_value(data, f"input_{k}", name, feeds[name])
        for k, (name, value) in enumerate(zip(labels, results, strict=True)):
            write_value(data, f"output_{k}", name, value)


def write_parts(work, model, feeds, strict):
    """The second row of a file whose steps spread. strict: its meta.json before it was widened."""
    names = cuts(model)
    wide = work / "wide.onnx"
    onnx.save(with_outputs(model, names), str(wide))
    inputs, labels, results = run_all(wide, [feeds], "ORT_DISABLE_ALL")
    wide.unlink()
    found = dict(zip(labels, results[0], strict=True))
    values = {name: found[name] for name in names}
    own = labels[:len(labels) - len(names)]
    steps = [1.0001 if v.dtype.itemsize == 1 else 1e-4 * float(np.abs(v).max(initial=0))
             for v in values.values()]
    parts = work / "parts"
    write_sets(parts, inputs + names, own + names, [feeds | values], [results[0]])
    onnx.save(in_parts(model, values), str(parts / "model.onnx"))
    atols = strict["atols"] + steps
    meta = {"kind": "parts", "nodes": strict["nodes"], "rtol": 0, "atol": max(atols),
            "atols": atols, "share": 0.999, "note": f"cut at {len(names)} quantized values"}
    (parts / "meta.json").write_text(json.dumps(meta, indent=1) + "\n")


def write_row(kind, source, work):
    """Everything of a row into the folder `work`, but meta.json, which is returned."""
    original = onnx.load(str(source))
    sets = read_sets(source.parent, original)
    target = work / "model.onnx"
    try:
        make_file(kind, source, target, sets)
        model = onnx.load(str(target))
    except Exception as error:  # whatever the tool raises is its answer
        raise Refused(f"can't make it: {type(error).__name__}: {error}") from error
    if kind not in LEVELS and traces(model, kind) == traces(original, kind):
        raise Refused("the tool found nothing to change")
    try:
        names, labels, results = run_all(target, sets)
        plain = run_all(target, sets, "ORT_DISABLE_ALL")[2]
    except Exception as error:
        raise Refused(f"can't run it: {type(error).__name__}: {error}") from error
    own_file = source.parent / "meta.json"
    own = json.loads(own_file.read_text()) if own_file.exists() else {}
    named = list(zip(labels, results[0], strict=True))
    meta = {"kind": kind, "nodes": count_nodes(model)} | tolerances(model, kind, own, named)
    strict = dict(meta)
    values = choose(meta, results, plain)
    if kind == "fp16":
        values = take_float(meta, values, source, sets)
    write_sets(work, names, labels, sets, values)
    if allow_movement(meta, target, sets) and strict.get("share"):
        write_parts(work, model, sets[0], strict)
    return meta


def run_child(kind, source, work, log):
    """The body of a row's process; its exit status says only whether it came to an end."""
    os.dup2(log.fileno(), 1)
    os.dup2(log.fileno(), 2)
    signal.alarm(LIMIT_SECONDS)
    try:
        meta = write_row(kind, source, work)
        (work / "meta.json").write_text(json.dumps(meta, indent=1) + "\n")
    except Refused as reason:
        refuse(work, kind, str(reason))


def refuse(work, kind, message):
    shutil.rmtree(work)
    work.mkdir()
    text = " ".join(message.replace(f"{work}/", "").split())
    (work / "refused.txt").write_text(text[:1000] + "\n")
    (work / "meta.json").write_text(json.dumps({"kind": kind}) + "\n")


def make_row(kind, source, folder, stamp):
    """Make one folder; returns the line that reports it."""
    work = folder.parent / f".{folder.name}"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    begin = time.monotonic()
    with open(folder.parent / "tools.log", "ab") as log:
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                run_child(kind, source, work, log)
                status = 0
            finally:
                os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status < 0:
        refuse(work, kind, f"the tool was ended by {signal.Signals(-status).name} after "
                           f"{time.monotonic() - begin:.0f} s")
    elif status > 0:
        raise SystemExit(f"make_parity: {folder.name}: failed, see {folder.parent}/tools.log")
    (work / ".stamp").write_text(stamp)
    parts = folder.with_name(folder.name + ".parts")
    for old in (folder, parts):
        shutil.rmtree(old, ignore_errors=True)
    if (work / "parts").exists():
        (work / "parts").rename(parts)
    work.rename(folder)
    refused = folder / "refused.txt"
    word = refused.read_text().strip()[:120] if refused.exists() else "made"
    return f"{folder.name}: {word} ({time.monotonic() - begin:.1f} s)"


def plan(models, topologies, wanted):
    """(name, kind, source) of every row."""
    rows = [(path.parent.name, kind, path) for path in sorted(models.glob("*/model.onnx"))
            for kind in wanted]
    for path in sorted(topologies.glob("*/model.onnx")) if topologies else ():
        name = path.parent.name
        kinds = LARGE.get(name, KINDS if name in QUANTIZED else list(LEVELS))
        rows += [(name, kind, path) for kind in kinds if kind in wanted]
    return rows


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("--only", default="*")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("build/parity"))
    parser.add_argument("models", type=pathlib.Path)
    parser.add_argument("topologies", type=pathlib.Path, nargs="?")
    args = parser.parse_args()
    rows = [row for row in plan(args.models, args.topologies, args.kinds.split(","))
            if fnmatch.fnmatch(f"{row[0]}.{row[1]}", args.only)]
    digests = {}
    for at, (name, kind, source) in enumerate(rows, 1):
        if source not in digests:
            with open(source, "rb") as file:
                digests[source] = hashlib.file_digest(file, "sha256").hexdigest()
        stamp = f"{RECIPE} {onnxruntime.__version__} {digests[source]}\n"
        folder = args.output / f"{name}.{kind}"
        kept = folder / ".stamp"
        if kept.exists() and kept.read_text() == stamp:
            continue
        print(f"[{at}/{len(rows)}]", make_row(kind, source.resolve(), folder.absolute(), stamp),
              file=sys.stderr, flush=True)


main()
