#!/usr/bin/env python3
"""ort-quantize static beside onnxruntime.quantization, on every float model of MODELS, every filled
topology and the trained models of this repository: the same samples calibrate both, and others,
drawn alike, measure the outputs.

usage: bench_quant.py BIN SCRATCH DIR... [--only GLOB,...] [--effort]

The measure is the SQNR of outputs against the float model's, in dB: of each float output over all
samples (8, or 4 of large models; 128 where outputs have less than 128 numbers each time), at most
100, then the mean over outputs. An output with a NaN or infinity that float doesn't have counts as
-100. All files run in onnxruntime, and here, where sums of bytes are exact on every processor: in
onnxruntime they are so with VNNI, and cut at 16 bits on AVX2 without it. Ours by
default stands beside the best of twelve of onnxruntime's ({MinMax, Percentile, Entropy} x {per
tensor, per channel} x {u8s8, s8s8}) in both; with --effort, that level of ours beside the best of
NNCF's four (quant_peers.py) in onnxruntime. Where that is ahead and leaves weights in float, of
recurrent layers, tables of rows and products (both convolutions of each squeeze-and-excitation
block are on its list of what stays), or computes swish in float between a product and the next
codes, ours is measured with these excluded, too.

Peers' files and their SQNR stay in SCRATCH from run to run, while model, samples and the peer's
version stay. The last lines are the gates. A float model with products that isn't judged fails
them, unless a line of UNJUDGED below says why; and so does such a line that isn't true any more.
"""
import argparse
import fnmatch
import hashlib
import json
import pathlib
import statistics
import subprocess
import sys
import time

import numpy as np
import onnx

import quant_samples
from onnx_runs import inputs_of, session
from quant_peers import names

HERE = pathlib.Path(__file__).resolve().parent
CEILING_DB = 100
LARGE_BYTES = 40 << 20
SAMPLES = ((16, 8), (8, 4))  # to calibrate, to measure: of a model, of a large one
FEW, MANY = 128, 128  # outputs of fewer numbers than that: of 8 samples chance decides; so many
LIMIT_S = 1800
RUNTIMES = ("ort", "here")
PRODUCTS = {"Conv", "ConvTranspose", "Gemm", "MatMul"}
MARGIN_DB = 1
UNJUDGED = {  # by onnxruntime's twelve, none of which could be made or loads
    "basic_pitch_nmp": "onnxruntime refuses its own files: a Transpose of four axes reads a weight "
                       "of one",
    "scan_1": "all its products lie in bodies, which onnxruntime's tools leave in float",
    "silero_vad": "all its products lie in bodies, which onnxruntime's tools leave in float",
    "squeezenet_tensor_input": "its opset 7 has ImageScaler, which onnx's converter of versions "
                               "doesn't know, by which onnxruntime's tools go to 10",
    "skl_diabetes_gpr_f64": "all of it computes in double, and neither tool makes codes of that",
    "swift_f0": "calibration ends on infinities (\"autodetected range is not finite\"), or the "
                "model on a tensor that isn't there (\"Only an existing tensor can be modified\")",
}
UNJUDGED_BY_NNCF = {
    "ort_tiny_gpt2_past": "NNCF ends on an assertion",
    "scan_1": "NNCF puts nothing of it on codes: all its products lie in bodies",
    "silero_micro": "NNCF puts nothing of it on codes",
    "skl_digits_mlp": "NNCF takes no opset before 10",
    "squeezenet_tensor_input": "NNCF takes no opset before 10",
    "tiny_model_with_loop": "NNCF takes no loops (\"list index out of range\")",
}
# Whose weights are codes for the size alone, and the inputs that these are.
WEIGHTS_ALONE = {"LSTM": (1, 2), "GRU": (1, 2), "RNN": (1, 2), "Gather": (0,)}
MEASURED = ("tensor(float)", "seq(map(string,tensor(float)))", "seq(map(int64,tensor(float)))")


def no_subject(path):
    """Why a model isn't one to be made static int8: None where it is."""
    model = onnx.load(str(path), load_external_data=False)
    types = set(operators(model.graph))
    if not types & PRODUCTS:
        return "no products"
    if any(t.data_type == onnx.TensorProto.FLOAT16 for t in model.graph.initializer):
        return "halves"
    on_codes = any("Quantize" in t or "QLinear" in t or "NBits" in t or "Integer" in t
                   for t in types)
    return "on codes already" if on_codes else None


def operators(graph):
    """Of a graph and its bodies."""
    for node in graph.node:
        yield node.op_type
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from operators(attribute.g)


def write_own(folder):
    """The trained models of this repository as folders, with the inputs they were measured on:
    of digits these are the samples, 14 in each."""
    root = HERE.parent.parent / "models"
    held = np.load(root / "held_out.npz")
    digits = held["digits_images"].astype(np.float32)[:, None] / 255
    small = held["upscale_small"].astype(np.float32).transpose(0, 3, 1, 2) / 255
    for name, image in (("digits", digits), ("upscale", small[:1])):
        home = folder / name
        home.mkdir(parents=True, exist_ok=True)
        (home / "model.onnx").write_bytes((root / f"{name}.onnx").read_bytes())
        np.savez(home / "inputs.npz", image=image)
    for k in range(sum(SAMPLES[0])):
        np.savez(folder / "digits" / f"sample_{k:02}.npz", image=digits[14 * k:14 * (k + 1)])
    return folder


# ---- what a file computes

def numbers(value):
    """Of a tensor, or of a list of maps from classes to probabilities."""
    if isinstance(value, list):
        return np.array([list(row.values()) for row in value], np.float64)
    return value


def digest(files, feeds):
    """Of a model and the samples of both kinds."""
    total = hashlib.sha256()
    for path in files:
        total.update(path.read_bytes())
    for feed in feeds:
        for name, value in feed.items():
            array = np.ascontiguousarray(value) if isinstance(value, np.ndarray) else None
            text = repr(value) if array is None or array.dtype == object else ""
            total.update(name.encode() + (text.encode() or array.tobytes()))
    return total.hexdigest()


class Reference:
    """The float model's outputs for the samples that measure."""

    def __init__(self, folder, home):
        self.path, self.home = folder / "model.onnx", home
        size = sum(p.stat().st_size for p in folder.glob("model.onnx*"))
        calibrate, evaluate = SAMPLES[size > LARGE_BYTES]
        model = session(self.path, "basic")
        self.names = [o.name for o in model.get_outputs() if o.type in MEASURED]
        self.tensors = all(o.type == "tensor(float)" for o in model.get_outputs()
                           if o.name in self.names)
        recorded = inputs_of(folder, model)
        recorded = {i.name: recorded[i.name] for i in model.get_inputs() if i.name in recorded}
        drawn = [dict(np.load(path)) for path in sorted(folder.glob("sample_*.npz"))] or \
            self.draw(model, recorded, calibrate, evaluate, folder.name.startswith("ppocr"))
        self.feeds = drawn[calibrate:]
        self.digest = digest(sorted(folder.glob("model.onnx*")), drawn)
        self.calibration = self.save(drawn[:calibrate], "calibration")
        self.evaluation = self.save(self.feeds, "evaluation")
        self.wanted = [list(map(numbers, model.run(self.names, feed))) for feed in self.feeds]

    def draw(self, model, recorded, calibrate, evaluate, text):
        """To calibrate, and behind them to measure: more where each says little."""
        first = quant_samples.draw(recorded, 1, 1, text=text)[0]
        count = sum(np.size(numbers(value)) for value in model.run(self.names, first))
        return quant_samples.draw(recorded, 1, calibrate + (MANY if count < FEW else evaluate),
                                  text=text)

    def save(self, feeds, name):
        folder = self.home / name
        folder.mkdir(parents=True, exist_ok=True)
        for k, feed in enumerate(feeds):
            np.savez(folder / f"{k:03}.npz", **feed)
        return folder

    def sqnr(self, results):
        """Mean over outputs, of lists of outputs by sample."""
        each = []
        for i in range(len(self.names)):
            signal = noise = 0.0
            for wanted, got in zip(self.wanted, results):
                a, b = wanted[i].astype(np.float64), np.asarray(got[i], np.float64)
                if a.shape != b.shape:
                    return None
                finite = np.isfinite(a)
                signal += float((a[finite] ** 2).sum())
                wrong = not np.isfinite(b[finite]).all()
                noise += np.inf if wrong else float(((a - b)[finite] ** 2).sum())
            if signal > 0:
                least = signal * 10 ** (-CEILING_DB / 10)
                each.append(10 * np.log10(signal / min(max(noise, least), signal ** 2 / least)))
        return round(float(np.mean(each)), 2) if each else None

    def in_onnxruntime(self, path):
        model = session(path, "all")
        inputs = {i.name for i in model.get_inputs()}
        return self.sqnr([list(map(numbers, model.run(
            self.names, {k: v for k, v in feed.items() if k in inputs}))) for feed in self.feeds])

    def here(self, path, tools):
        """None where an output is no tensor: .npz has none else."""
        results = []
        if not self.tensors:
            return None
        for sample in sorted(self.evaluation.glob("*.npz")):
            out = self.home / "out.npz"
            subprocess.run([tools / "ort-run", path, "--no-pack", "-q", "-i", sample, "-o", out],
                           check=True, timeout=LIMIT_S, stdout=subprocess.DEVNULL)
            arrays = np.load(out)
            results.append([arrays[name] for name in self.names])
        return self.sqnr(results)


def attempt(measure, *arguments):
    """(dB, None) or (None, why)."""
    try:
        value = measure(*arguments)
    except Exception as error:  # pylint: disable=broad-except
        return None, str(error).strip().splitlines()[-1][:160]
    return value, None if value is not None else "other outputs"


# ---- files

def has_codes(path):
    model = onnx.load(str(path), load_external_data=False)
    return "DequantizeLinear" in set(operators(model.graph))


def start_over(home, made_of):
    """Files that an earlier run left stay where it was stopped at the same."""
    begun = home / "begun.txt"
    if begun.exists() and json.loads(begun.read_text()) == made_of:
        return
    for path in home.glob("*.*"):
        path.unlink()
    begun.write_text(json.dumps(made_of))


def theirs(who, python, reference, home, tools):
    """{name: what judged() says} of a peer, made once."""
    home.mkdir(parents=True, exist_ok=True)
    index = home / f"{who}.json"
    made_of = [reference.digest, names(who), wanted_of(who)]
    judged_by = made_of + list(RUNTIMES)
    found = json.loads(index.read_text()) if index.exists() else {}
    if found.pop("made_of", None) == judged_by:
        return found
    start_over(home, made_of)
    found = {}
    begin = time.perf_counter()
    try:
        subprocess.run([python, HERE / "quant_peers.py", who, reference.path,
                        reference.calibration, home], timeout=LIMIT_S, check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        pass
    for name in names(who):
        path = home / f"{name}.onnx"
        why = path.with_suffix(".txt")
        if not path.exists():
            text = why.read_text().strip().splitlines()[-1][:160] if why.exists() else \
                f"not made within {LIMIT_S} s"
            found[name] = {"why": text}
            continue
        found[name] = {"why": "nothing in it is on codes"} if not has_codes(path) else \
            judged(reference, path, tools)
    found["seconds"] = round(time.perf_counter() - begin, 1)
    best = [row[1] for row in (best_of(found, runtime) for runtime in RUNTIMES) if row]
    for path in home.glob("*"):
        keep = path == index or path.suffix in (".txt", ".npz") or \
            any(path.name.startswith(name + ".onnx") for name in best)
        if not path.is_dir() and not keep and path.suffix != ".json":
            path.unlink()
    index.write_text(json.dumps(dict(found, made_of=judged_by), indent=1))
    return found


def judged(reference, path, tools):
    """{"ort", "here"}: dB in each runtime, what is known; or {"why"} where onnxruntime refuses."""
    row = {}
    row["ort"], row["why"] = attempt(reference.in_onnxruntime, path)
    row["here"], row["why_here"] = attempt(reference.here, path, tools)
    return {key: value for key, value in row.items() if value is not None}


def wanted_of(who):
    """The peer's packages with their versions."""
    lists = ["requirements.txt"] + (["requirements-nncf.txt"] if who == "nncf" else [])
    text = "".join((HERE.parent / name).read_text() for name in lists)
    return hashlib.sha256(text.encode()).hexdigest()


def best_of(found, runtime="ort"):
    """(dB, name), or None."""
    rows = [(row[runtime], name) for name, row in found.items()
            if isinstance(row, dict) and runtime in row]
    return max(rows, default=None)


def ours(settings, reference, home, options):
    """{"ort": dB, "here": dB, "seconds": s}, or {"why"}."""
    source, target = home / "ours_source.onnx", home / "ours.onnx"
    begin = time.perf_counter()
    for command in ([settings.tools / "ort-optimize", reference.path, "--level", "1", "-q",
                     "--no-verify", "-o", source],
                    [settings.quantize, "static", source, "-q", "-o", target, *options,
                     *(f"-i{path}" for path in sorted(reference.calibration.glob("*.npz")))]):
        done = subprocess.run(list(map(str, command)), stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, timeout=LIMIT_S, check=False)
        if done.returncode:
            text = done.stderr.decode(errors="replace").strip().splitlines() or [""]
            return {"why": f"exit {done.returncode}: {text[-1][:160]}"}
    row = {"seconds": round(time.perf_counter() - begin, 1)}
    return row | judged(reference, target, settings.tools)


# ---- the table

def text_of(value):
    return "-" if value is None else f"{value:.2f}"


def measure(folder, settings):
    home = settings.scratch / folder.name
    home.mkdir(parents=True, exist_ok=True)
    reference = Reference(folder, home)
    row = {"name": folder.name, "outputs": len(reference.names)}
    if not reference.names:
        return row
    found = theirs("onnxruntime", sys.executable, reference, home / "onnxruntime", settings.tools)
    row["peer"], row["why"], row["made"] = best_of(found), why_none(found), made_of(found)
    row["tensors"] = reference.tensors
    row["peer_here"] = best_of(found, "here")
    row["ours"] = ours(settings, reference, home, settings.options)
    if settings.effort:
        row["effort"] = ours(settings, reference, home, ["--effort"])
    if settings.effort and settings.python_of_nncf:
        found = theirs("nncf", settings.python_of_nncf, reference, home / "nncf", settings.tools)
        row["nncf"], row["why_nncf"] = best_of(found), why_none(found)
        measure_alike(row, settings, reference, home)
    return row


def left_alone(path):
    """Of WEIGHTS_ALONE, operators in the file that read constants in float, and none as codes, with
    Sigmoid and Mul where a swish reads what products give in float; and names of its products that
    multiply by constants in float."""
    graph = onnx.load(str(path), load_external_data=False).graph
    floats = {t.name for t in graph.initializer if t.data_type == onnx.TensorProto.FLOAT} | \
             {n.output[0] for n in graph.node if n.op_type == "Constant"}
    coded = {n.output[0] for n in graph.node if n.op_type == "DequantizeLinear"}
    left, taken = set(), set()
    for node in graph.node:
        slots = {node.input[i] for i in WEIGHTS_ALONE.get(node.op_type, ())}
        if slots & floats:
            left.add(node.op_type)
        if slots & coded:
            taken.add(node.op_type)
    results = {node.output[0] for node in graph.node if node.op_type in PRODUCTS}
    if any(n.op_type == "Sigmoid" and n.input[0] in results for n in graph.node):
        left |= {"Mul", "Sigmoid"}
    products = [node.name for node in graph.node
                if node.op_type in PRODUCTS and node.input[1] in floats and node.name]
    return sorted(left - taken), products


def measure_alike(row, settings, reference, home):
    """Ours with what NNCF leaves alone left alone, where NNCF is ahead."""
    if not row["nncf"] or row["effort"].get("ort", CEILING_DB) >= row["nncf"][0]:
        return
    left, products = left_alone(home / "nncf" / f"{row['nncf'][1]}.onnx")
    here = {node.name for node in onnx.load(str(home / "ours_source.onnx")).graph.node}
    products = [name for name in products if name in here]
    if left or products:
        row["alike"] = ours(settings, reference, home,
                            ["--effort", "--exclude", ",".join(left + products)])
        row["left"] = left + ([f"{len(products)} products"] if products else [])


def made_of(found):
    """How many of a peer's files there are."""
    return sum(isinstance(row, dict) and "ort" in row for row in found.values())


def why_none(found):
    """What the first of a peer's files that aren't there failed by."""
    return next((row["why"] for row in found.values() if isinstance(row, dict) and "why" in row),
                None)


def said_of(peer, row):
    made = row.get("made", len(names("onnxruntime")))
    few = f" of {made}" if made < len(names("onnxruntime")) else ""
    return peer[1] + few if peer else "-"


def alike_of(row):
    alike = row.get("alike", {}).get("ort")
    return "" if alike is None else f" ({alike:.2f} without {', '.join(row['left'])})"


def print_row(row):
    mine, peer, effort = row.get("ours", {}), row.get("peer"), row.get("effort", {})
    nncf, here = row.get("nncf"), row.get("peer_here")
    gap = mine["ort"] - peer[0] if peer and "ort" in mine else None
    cells = [row["name"], text_of(mine.get("ort")), text_of(mine.get("here")),
             text_of(peer and peer[0]), said_of(peer, row), text_of(here and here[0]),
             text_of(gap), text_of(mine.get("seconds")), text_of(effort.get("ort")) + alike_of(row),
             text_of(nncf and nncf[0]), text_of(effort.get("seconds")),
             mine.get("why") or (mine.get("why_here") if row.get("tensors") else None) or ""]
    print("| " + " | ".join(cells) + " |", flush=True)


def gate(what, rows, fails):
    bad = [(row["name"], fails(row)) for row in rows if fails(row)]
    print(f"{'ok' if not bad else 'not ok'}: {what}: {len(rows) - len(bad)} of {len(rows)}")
    for name, why in bad:
        print(f"    {name}: {why}")
    return bool(bad)


def beaten(row):
    mine, peer = row["ours"], row["peer"]
    if "ort" not in mine or ("here" not in mine and row.get("tensors", True)):
        return mine.get("why") or mine.get("why_here") or "not run"
    if mine["ort"] < peer[0]:
        return f"{mine['ort']} dB in onnxruntime, {peer[1]} has {peer[0]}"
    exact = row["peer_here"]
    if exact and "here" in mine and mine["here"] < exact[0]:
        return f"{mine['here']} dB here, {exact[1]} has {exact[0]}"
    return ""


def beaten_by_nncf(row):
    mine = row["effort"].get("ort")
    if mine is None:
        return row["effort"].get("why")
    mine = max(mine, row.get("alike", {}).get("ort", mine))
    return "" if mine >= row["nncf"][0] else f"{mine} dB, {row['nncf'][1]} has {row['nncf'][0]}"


def unjudged(row, key, known):
    """What is wrong with a model that isn't judged, or with its being said not to be."""
    if row.get(key):
        return "judged, but said not to be" if row["name"] in known else ""
    if row["name"] in known:
        return ""
    return row.get({"peer": "why", "nncf": "why_nncf"}[key]) or "no output to measure"


def print_unjudged(rows, key, known):
    for row in rows:
        if not row.get(key) and row["name"] in known:
            print(f"    without {row['name']}: {known[row['name']]}")


def against_peer(what, rows, key, fails, known):
    """Two gates: every model is judged, and none is beaten."""
    failed = gate(f"{what}: judged", rows, lambda row: unjudged(row, key, known))
    print_unjudged(rows, key, known)
    return failed | gate(what, [r for r in rows if r.get(key)], fails)


def print_gates(rows, settings):
    print()
    failed = against_peer("at least the best of onnxruntime's twelve", rows, "peer", beaten,
                          UNJUDGED)
    gaps = [r["ours"]["ort"] - r["peer"][0] for r in rows
            if r.get("peer") and "ort" in r["ours"]]
    median = statistics.median(gaps) if gaps else 0
    failed |= median < MARGIN_DB
    print(f"{'ok' if median >= MARGIN_DB else 'not ok'}: {MARGIN_DB} dB above it in the median: "
          f"{median:.2f} dB")
    if settings.effort:
        failed |= against_peer("--effort at least the best of NNCF's four", rows, "nncf",
                               beaten_by_nncf, UNJUDGED_BY_NNCF)
    return failed


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("tools", type=pathlib.Path)
    parser.add_argument("scratch", type=pathlib.Path)
    parser.add_argument("folders", type=pathlib.Path, nargs="+")
    parser.add_argument("--only", default="*")
    parser.add_argument("--quantize", type=pathlib.Path)
    parser.add_argument("--effort", action="store_true")
    parser.add_argument("--python-of-nncf", default="")
    parser.add_argument("--options", type=str.split, default=[])
    settings = parser.parse_args()
    settings.quantize = settings.quantize or settings.tools / "ort-quantize"
    return settings


def main():
    settings = parse()
    settings.folders.append(write_own(settings.scratch / "own"))
    folders = [f for top in settings.folders for f in sorted(top.iterdir())
               if (f / "model.onnx").exists() and
               any(fnmatch.fnmatch(f.name, p) for p in settings.only.split(","))]
    print("SQNR in dB. Ours by default, in onnxruntime and here; the best of onnxruntime's twelve in "
          "each of both;\nours with --effort and the best of NNCF's four in onnxruntime.\n\n"
          "| model | ours | here | best | of | here | gap | s | effort | NNCF | s | |\n"
          "| --- | --: | --: | --: | --- | --: | --: | --: | --: | --: | --: | --- |")
    rows, others = [], {}
    for folder in folders:
        why = no_subject(folder / "model.onnx")
        if why:
            others.setdefault(why, []).append(folder.name)
            continue
        rows.append(measure(folder, settings))
        print_row(rows[-1])
        settings.scratch.joinpath("results.json").write_text(json.dumps(rows, indent=1))
    failed = print_gates(rows, settings)
    for why, them in others.items():
        print(f"not asked for, {why}: {', '.join(them)}")
    return failed or not rows


if __name__ == "__main__":
    sys.exit(main())
