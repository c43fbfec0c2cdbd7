#!/usr/bin/env python3
"""check_failures.py - the known ways in which int8 fails, planted: what ort-quantize says, and what avoids each.

usage: check_failures.py BIN_DIR [NAME...]

  saturation  sums of uint8 by int8 that processors without VNNI cut at 16 bits
  depthwise   channels of different size on one scale
  heads       boxes and scores that share a scale, which leaves the scores no codes
  outliers    one number that takes all codes from those beside it
  slower      a net for which codes cost more than they save

Each shows that the failure is there (by the option or the file that has it), that the report or a verb names it,
and that the default, or what the report names, is free of it.

Closes with "N passed, N failed, N skipped". Needs the packages of tests/requirements.txt.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper

from check_quantize import F32, Net, Reader, Report


class Planted:
    def __init__(self, bin_dir, folder, build):
        self.bin, self.folder = bin_dir, folder
        self.net = Net(17)
        self.path = folder / "net.onnx"
        self.made = folder / "q.onnx"
        results = build(self.net)
        onnx.save(self.net.model(*(results if isinstance(results, tuple) else (results,))), self.path)
        self.samples = []
        for k in range(8):
            np.savez(folder / f"s{k}.npz", **self.net.feeds(k))
            self.samples += ["-i", str(folder / f"s{k}.npz")]

    def tool(self, *arguments):
        return subprocess.run([str(a) for a in arguments], capture_output=True, text=True)

    def quantize(self, *options, samples=None):
        """The report as JSON; None where the tool says no."""
        r = self.tool(self.bin / "ort-quantize", "static", self.path, *(samples or self.samples), "-o", self.made,
                      "--force", "--json", *options)
        return json.loads(r.stdout) if r.returncode == 0 else None

    def said(self, *options):
        r = self.tool(self.bin / "ort-quantize", "static", self.path, *self.samples, "-o", self.made, "--force", *options)
        return r.stdout + r.stderr

    def answers(self, model, feeds, *options):
        np.savez(self.folder / "in.npz", **feeds)
        r = self.tool(self.bin / "ort-run", model, "-i", self.folder / "in.npz", "-o", self.folder / "out.npz", "--force",
                      *options)
        assert r.returncode == 0, r.stderr
        out = np.load(self.folder / "out.npz")
        return [out[k] for k in out.files]


def sqnr_of(report):
    return min(1000 if o["exact"] else o["sqnr_db"] for o in report["outputs"])


def sqnr(a, b):
    noise = ((a.astype(np.float64) - b) ** 2).sum()
    return 10 * np.log10((a.astype(np.float64) ** 2).sum() / max(noise, 1e-300))


# ---- saturation

def as_older_processors(path, x):
    """The one product of the file as vpmaddubsw has it: sums of two products cut at 16 bits."""
    graph = onnx.load(path).graph
    c = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    quantize = next(n for n in graph.node if n.op_type == "QuantizeLinear" and n.input[0] == "x0")
    scale, zero = (c[name] for name in quantize.input[1:3])
    codes = next(v for k, v in c.items() if k.endswith("_codes") and v.ndim == 2).astype(np.int64)
    weight_scale = next(v for k, v in c.items() if k.startswith("c0_scale"))
    a = np.clip(np.rint(x / scale) + zero, 0, 255).astype(np.int64)
    pairs = a[:, :, None] * codes[None]
    pairs = np.clip(pairs[:, 0::2] + pairs[:, 1::2], -32768, 32767).sum(axis=1)
    return (pairs - int(zero) * codes.sum(axis=0)) * scale * weight_scale


def saturation(bin_dir, folder, check):
    def build(n):
        signs = np.where(np.arange(32)[:, None] < 24, 1, -1) * np.ones((32, 8))
        return n.op("MatMul", n.input(4, 32), n.constant(signs.astype(F32)))
    p = Planted(bin_dir, folder, build)
    x = np.full((4, 32), 2.5, F32)
    want = p.answers(p.path, {"x0": x})[0]
    report = p.quantize()
    held = sqnr(want, as_older_processors(p.made, x))
    check(report["may_saturate_elsewhere"] == [] and held > 30, f"the default: none named, {held:.1f} dB there")
    report = p.quantize("--full-range")
    cut = sqnr(want, as_older_processors(p.made, x))
    check(cut < 15, f"it is there with --full-range: {cut:.1f} dB where pairs are cut")
    check(len(report["may_saturate_elsewhere"]) == 1, "the report names the product")
    check("--reduce-range avoids it" in p.said("--full-range"), "and the remedy")
    ours = [p.answers(p.made, {"x0": x}, "--isa", isa)[0] for isa in ("scalar", "avx2")]
    ours.append(p.answers(p.made, {"x0": x})[0])
    check(all((o == ours[0]).all() for o in ours) and sqnr(want, ours[0]) > 30, "no tier here cuts sums")
    report = p.quantize("--reduce-range")
    held = sqnr(want, as_older_processors(p.made, x))
    check(report["may_saturate_elsewhere"] == [] and held > 30, f"--reduce-range: none named, {held:.1f} dB there")


# ---- depthwise on one scale

def depthwise(bin_dir, folder, check):
    def build(n):
        fade = np.logspace(0, -3, 16).astype(F32)[:, None, None, None]
        x = n.op("Conv", n.input(1, 3, 12, 12), n.weight(16, 3, 1, 1))
        w = n.constant((fade * n.rng.standard_normal((16, 1, 3, 3))).astype(F32))
        return tuple(n.op("Split", n.op("Conv", x, w, group=16, pads=[1] * 4), axis=1, outputs=4))
    p = Planted(bin_dir, folder, build)
    plain = ("--per-tensor", "--observer", "mse", "--keep-sensitive", "0")
    one, each = sqnr_of(p.quantize(*plain)), sqnr_of(p.quantize())
    check(one < 10, f"it is there: {one:.1f} dB with --per-tensor, and nothing chosen by samples")
    check(each > 25, f"a scale each channel, the default: {each:.1f} dB")
    check(p.quantize(*plain, "--min-sqnr", "20") is None, "--min-sqnr keeps the file away")
    even = sqnr_of(p.quantize(*plain, "--equalize"))
    check(even > one + 10, f"--equalize, where one scale must do: {even:.1f} dB")
    chosen = sqnr_of(p.quantize("--per-tensor"))
    check(chosen > one + 10, f"which samples choose by themselves: {chosen:.1f} dB")


# ---- heads that share a scale

def heads(bin_dir, folder, check):
    from onnxruntime import quantization as oq

    def build(n):
        x = n.op("Relu", n.conv(n.input(1, 3, 8, 8), 3, 8))
        boxes = n.op("Mul", n.conv(x, 8, 4, 1), n.constant(F32(300)))
        scores = n.op("Sigmoid", n.conv(x, 8, 2, 1))
        return n.op("Concat", boxes, scores, axis=1)
    p = Planted(bin_dir, folder, build)
    feeds = p.net.feeds(0)
    want = p.answers(p.path, feeds)[0]
    theirs = folder / "theirs.onnx"
    oq.quantize_static(str(p.path), str(theirs), Reader(p.net), per_channel=True)
    shared = sqnr(want[:, 4:], p.answers(theirs, feeds)[0][:, 4:])
    check(shared < 12, f"it is there: scores at {shared:.1f} dB in onnxruntime.quantization's file")
    p.quantize()
    own = sqnr(want[:, 4:], p.answers(p.made, feeds)[0][:, 4:])
    check(own > 25, f"the Concat stays float by default: scores at {own:.1f} dB")
    said = p.said("-v")
    check("Concat '" in said and "stays float" in said, "-v names the Concat")


# ---- outliers

def outliers(bin_dir, folder, check):
    outliers_of(400, bin_dir, folder, check)
    outliers_of(2000, bin_dir, folder, check)


def outliers_of(factor, bin_dir, folder, check):
    def build(n):
        big = np.ones((16, 16), F32)
        big[:, 3] = factor
        small = np.ones((16, 16), F32)
        small[3] = 1 / factor
        x = n.op("Relu", n.op("MatMul", n.input(32, 16), n.constant((n.rng.standard_normal((16, 16)) * big / 4).astype(F32))))
        return n.op("MatMul", x, n.constant((n.rng.standard_normal((16, 16)) * small / 4).astype(F32)))
    p = Planted(bin_dir, folder, build)
    plain = sqnr_of(p.quantize("--observer", "min-max"))
    check(plain < 15, f"it is there: {plain:.1f} dB")
    chosen = sqnr_of(p.quantize())
    check(chosen > 30, f"the default spreads it over the weights, which samples chose: {chosen:.1f} dB")
    rows = [r.split("\t") for r in p.tool(bin_dir / "ort-quantize", "static", p.path, *p.samples, "--sensitivity", "-q",
                                          ).stdout.splitlines() if r[0] != "#"]
    check(rows[0][0] == "MatMul_2", f"--sensitivity has the node that reads it first: {rows[0]}")
    for option in ("--equalize", "--smooth"):
        even = sqnr_of(p.quantize("--observer", "min-max", option))
        check(even > 30, f"{option} spreads it over the weights: {even:.1f} dB")
    wide = folder / "o.json"
    rule = {"node": "MatMul_2", "type": "uint16", "weights": "int16"}
    wide.write_text(json.dumps({"schema": "ort-overrides/1", "overrides": [rule]}))
    held = sqnr_of(p.quantize("--overrides", wide))
    check(held > 30, f"16 bits there: {held:.1f} dB")
    found = p.quantize("--auto", "size", "--min-sqnr", "30")
    check(found is not None and sqnr_of(found) >= 30, "--auto finds what holds 30 dB")
    check(p.quantize("--min-sqnr", "30") is None or sqnr_of(p.quantize()) >= 30, "--min-sqnr lets no file through")


# ---- slower

def slower(bin_dir, folder, check):
    def build(n):
        x = n.input(1, 4, 8, 8)
        for _ in range(3):
            x = n.op("Softmax", n.conv(x, 4, 4, group=4), axis=1)
        return x
    p = Planted(bin_dir, folder, build)
    report = p.quantize()
    check(report["latency"]["speedup"] > 0 and report["products"]["quantize_dequantize_left"] >= 3,
          "the report times both models, and counts the Q and DQ that runs still do")
    left = report["products"]["left"]
    check(len(left) == report["products"]["quantize_dequantize_left"] and
          all(row["name"] and row["op_type"] in ("QuantizeLinear", "DequantizeLinear") for row in left),
          "and names each")
    said = p.said()
    named = said.partition("  Q/DQ: ")[2].partition("\n")[0].split(", ")  # in the order of the time that this run took
    check("times as fast" in said and "Q/DQ left" in said and set(named) == {row["name"] for row in left}, "in words, too")
    check(p.quantize("--require-speedup", "1000") is None, "--require-speedup keeps the file away")
    r = p.tool(bin_dir / "ort-quantize", "suggest", p.path)
    check(r.returncode == 0 and "leave" in r.stdout and "tiny" in r.stdout, "suggest leaves such a net as it is")
    r = p.tool(bin_dir / "ort-quantize", p.path, *p.samples, "-o", folder / "no.onnx")
    check(r.returncode == 2 and not (folder / "no.onnx").exists(), "and so does the tool without a verb")


def main():
    bin_dir, only = pathlib.Path(sys.argv[1]), sys.argv[2:]
    report = Report()
    for case in (saturation, depthwise, heads, outliers, slower):
        if only and case.__name__ not in only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            def check(good, what, name=case.__name__):
                report.ok(bool(good), f"{name}: {what}")
                if only:
                    print(f"{name}: {what}: {bool(good)}")
            case(bin_dir, pathlib.Path(folder), check)
    print(f"{report.passed} passed, {report.failed} failed, {report.skipped} skipped")
    return report.failed != 0


if __name__ == "__main__":
    sys.exit(main())
