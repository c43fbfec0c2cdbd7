#!/usr/bin/env python3
"""ort-quantize static beside onnxruntime.quantization, on every float model of MODELS and every
filled topology: the same samples calibrate both, and others, drawn alike, measure the outputs.

usage: bench_quant.py BIN SCRATCH DIR... [--only GLOB,...] [--effort] [--nncf]

The measure is the SQNR of outputs against the float model's, in dB: of each float output over all
samples, at most 100, then the mean over outputs. All files run in onnxruntime; ours and the best of
theirs run here, too. Ours by default stands beside the best of twelve of onnxruntime's ({MinMax,
Percentile, Entropy} x {per tensor, per channel} x {u8s8, s8s8}); with --effort, that level of
ours beside NNCF's file with --nncf.

Peers' files and their SQNR stay in SCRATCH from run to run. The last lines are the gates.
"""
import argparse
import fnmatch
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
LIMIT_S = 1800
PRODUCTS = {"Conv", "ConvTranspose", "Gemm", "MatMul"}
MARGIN_DB = 1
MEASURED = ("tensor(float)", "seq(map(string,tensor(float)))", "seq(map(int64,tensor(float)))")


def is_float_net(path):
    """Has products, and nothing on codes yet."""
    model = onnx.load(str(path), load_external_data=False)
    types = {n.op_type for n in model.graph.node}
    floats = not any(t.data_type == onnx.TensorProto.FLOAT16 for t in model.graph.initializer)
    return bool(types & PRODUCTS) and floats and \
        not any("Quantize" in t or "QLinear" in t or "NBits" in t or "Integer" in t for t in types)


# ---- what a file computes

def numbers(value):
    """Of a tensor, or of a list of maps from classes to probabilities."""
    if isinstance(value, list):
        return np.array([list(row.values()) for row in value], np.float64)
    return value


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
        drawn = quant_samples.draw(recorded, 1, calibrate + evaluate,
                                   text=folder.name.startswith("ppocr"))
        self.feeds = drawn[calibrate:]
        self.calibration = self.save(drawn[:calibrate], "calibration")
        self.evaluation = self.save(self.feeds, "evaluation")
        self.wanted = [list(map(numbers, model.run(self.names, feed))) for feed in self.feeds]

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
                noise += float((np.nan_to_num(a - b)[finite] ** 2).sum())
            if signal > 0:
                each.append(10 * np.log10(signal / max(noise, 1e-10 * signal)))
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

def theirs(who, python, reference, home):
    """{name: {"db" or "why"}} of a peer, made once."""
    home.mkdir(parents=True, exist_ok=True)
    index = home / f"{who}.json"
    if index.exists():
        return json.loads(index.read_text())
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
            text = why.read_text().strip().splitlines()[-1][:160] if why.exists() else "no file"
            found[name] = {"why": text}
            continue
        value, text = attempt(reference.in_onnxruntime, path)
        found[name] = {"db": value} if text is None else {"why": text}
    found["seconds"] = round(time.perf_counter() - begin, 1)
    index.write_text(json.dumps(found, indent=1))
    best = best_of(found)
    for path in home.glob("*"):
        keep = path == index or path.suffix in (".txt", ".npz") or \
            best and path.name.startswith(best[1] + ".onnx")
        if not path.is_dir() and not keep and path.suffix != ".json":
            path.unlink()
    return found


def best_of(found):
    """(dB, name), or None."""
    rows = [(row["db"], name) for name, row in found.items() if name != "seconds" and "db" in row]
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
    row["ort"], row["why_ort"] = attempt(reference.in_onnxruntime, target)
    row["here"], row["why_here"] = attempt(reference.here, target, settings.tools)
    return {key: value for key, value in row.items() if value is not None}


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
    found = theirs("onnxruntime", sys.executable, reference, home / "onnxruntime")
    row["peer"] = best_of(found)
    if row["peer"] and "here" not in found.setdefault("best", {}):
        path = home / "onnxruntime" / f"{row['peer'][1]}.onnx"
        value, why = attempt(reference.here, path, settings.tools)
        found["best"] = {"here": value, "said": why}
        (home / "onnxruntime" / "onnxruntime.json").write_text(json.dumps(found, indent=1))
    row["peer_here"] = found.get("best", {}).get("here")
    row["ours"] = ours(settings, reference, home, settings.options)
    if settings.effort:
        row["effort"] = ours(settings, reference, home, ["--effort"])
    if settings.nncf and settings.python_of_nncf:
        row["nncf"] = best_of(theirs("nncf", settings.python_of_nncf, reference, home / "nncf"))
    return row


def print_row(row):
    mine, peer, effort = row.get("ours", {}), row.get("peer"), row.get("effort", {})
    nncf = row.get("nncf")
    gap = mine["ort"] - peer[0] if peer and "ort" in mine else None
    cells = [row["name"], text_of(mine.get("ort")), text_of(mine.get("here")),
             text_of(peer and peer[0]), peer[1] if peer else "-", text_of(row.get("peer_here")),
             text_of(gap), text_of(mine.get("seconds")), text_of(effort.get("ort")),
             text_of(nncf and nncf[0]), text_of(effort.get("seconds")),
             mine.get("why") or mine.get("why_ort") or mine.get("why_here") or ""]
    print("| " + " | ".join(cells) + " |", flush=True)


def gate(what, rows, fails):
    bad = [(row["name"], fails(row)) for row in rows if fails(row)]
    print(f"{'ok' if not bad else 'not ok'}: {what}: {len(rows) - len(bad)} of {len(rows)}")
    for name, why in bad:
        print(f"    {name}: {why}")
    return bool(bad)


def beaten(row):
    mine, peer = row["ours"], row["peer"]
    if "ort" not in mine or "here" not in mine:
        return mine.get("why") or mine.get("why_ort") or mine.get("why_here") or "not run"
    if mine["ort"] < peer[0]:
        return f"{mine['ort']} dB in onnxruntime, {peer[1]} has {peer[0]}"
    if row["peer_here"] is not None and mine["here"] < row["peer_here"]:
        return f"{mine['here']} dB here, {peer[1]} has {row['peer_here']}"
    return ""


def beaten_by_nncf(row):
    mine = row["effort"].get("ort")
    return "" if mine is not None and mine >= row["nncf"][0] else \
        f"{mine} dB, NNCF has {row['nncf'][0]}"


def print_gates(rows):
    both = [r for r in rows if r.get("peer")]
    print()
    failed = gate("at least the best of onnxruntime's twelve", both, beaten)
    gaps = [r["ours"]["ort"] - r["peer"][0] for r in both if "ort" in r["ours"]]
    if gaps:
        median = statistics.median(gaps)
        failed |= median < MARGIN_DB
        print(f"{'ok' if median >= MARGIN_DB else 'not ok'}: {MARGIN_DB} dB above it in the median: "
              f"{median:.2f} dB")
    against = [r for r in rows if r.get("nncf") and r.get("effort")]
    if against:
        failed |= gate("--effort at least NNCF's", against, beaten_by_nncf)
    for row in rows:
        if not row.get("peer"):
            print(f"no file of onnxruntime's to compare: {row['name']}")
    return failed


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("tools", type=pathlib.Path)
    parser.add_argument("scratch", type=pathlib.Path)
    parser.add_argument("folders", type=pathlib.Path, nargs="+")
    parser.add_argument("--only", default="*")
    parser.add_argument("--quantize", type=pathlib.Path)
    parser.add_argument("--effort", action="store_true")
    parser.add_argument("--nncf", action="store_true")
    parser.add_argument("--python-of-nncf", default="")
    parser.add_argument("--options", type=str.split, default=[])
    settings = parser.parse_args()
    settings.quantize = settings.quantize or settings.tools / "ort-quantize"
    return settings


def main():
    settings = parse()
    folders = [f for top in settings.folders for f in sorted(top.iterdir())
               if (f / "model.onnx").exists() and
               any(fnmatch.fnmatch(f.name, p) for p in settings.only.split(","))]
    print("SQNR in dB. Ours by default, in onnxruntime and here; the best of onnxruntime's twelve, "
          "likewise;\nours with --effort and NNCF's in onnxruntime.\n\n"
          "| model | ours | here | best | of | here | gap | s | effort | NNCF | s | |\n"
          "| --- | --: | --: | --: | --- | --: | --: | --: | --: | --: | --: | --- |")
    rows = []
    for folder in folders:
        if not is_float_net(folder / "model.onnx"):
            continue
        rows.append(measure(folder, settings))
        print_row(rows[-1])
        settings.scratch.joinpath("results.json").write_text(json.dumps(rows, indent=1))
    return print_gates(rows) or not rows


if __name__ == "__main__":
    sys.exit(main())
