#!/usr/bin/env python3
"""How often quantized classifiers answer as their float models do.

usage: bench_agreement.py BIN SCRATCH MODELS [--only GLOB,...] [--options "OPTION..."] [--json FILE]

Each model is quantized as the documented pipe does (ort-optimize --level 1, ort-quantize static
with --options), calibrated on some inputs and judged on at least 1,000 others (agreement_sets.py);
what has no generator here, on the sets that are recorded with it. `ort-quantize evaluate` counts.

Gates: of float's answers whose margin exceeds 0.1, at least 99 % stay; of 359 digits with labels at
most one is lost. A margin is one of probabilities: behind logits both models get a Softmax for it, and
the row of the logits, whose margins mean something else, stands beside it. All answers are in the
table, too. Exit status 1 where a gate fails.
"""
import argparse
import fnmatch
import json
import pathlib
import subprocess
import sys

import numpy as np
import onnx

import agreement_sets as sets

SHARE, MARGIN, LOST = 0.99, 0.1, 1

# model, its set, inputs in one run (the shapes of some outputs are fixed)
DRAWN = (("efficientnet_lite0", sets.lite0, 50), ("squeezenet_tensor_input", sets.squeezenet, 1),
         ("mlperf_tiny_resnet8_fp32", sets.resnet8, 100),
         ("mlperf_tiny_vww_fp32", sets.wake_words, 100),
         ("ppocrv4_rec", sets.recognition, 20), ("ppocrv2_cls", sets.direction, 50),
         ("magika_v3_3", sets.file_types, 50))
DIGITS = (("digits", "image", False), ("skl_digits_mlp", "X", True),
          ("skl_digits_svc_rbf", "X", True))
LOGITS = {"efficientnet_lite0": "logits", "mnist_8": "Plus214_Output_0"}
RECORDED = ("mnist_8", "mlperf_tiny_kws_fp32", "skl_iris_knn", "skl_titanic")


def run(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{pathlib.Path(command[0]).name}: exit {done.returncode}: "
                           f"{(done.stderr.strip().splitlines() or [''])[-1][:200]}")
    return done.stdout


def save(folder, feed, batch):
    """-i of a folder of files with `batch` inputs each."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.npz"):
        old.unlink()
    count = len(next(iter(feed.values())))
    for k in range(0, count, batch):
        np.savez(folder / f"{k:05}.npz", **{n: v[k:k + batch] for n, v in feed.items()})
    return ["-i", folder]


def with_softmax(path, output, target):
    """The same model with probabilities beside its logits."""
    model = onnx.load(str(path))
    model.graph.node.append(onnx.helper.make_node("Softmax", [output], ["probabilities"], axis=1))
    model.graph.output.append(onnx.helper.make_tensor_value_info("probabilities", 1, None))
    onnx.save(model, str(target))
    return target


class Bench:
    def __init__(self, settings):
        self.tools, self.scratch = settings.bin, settings.scratch
        self.options = settings.options.split()
        self.rows, self.failed = [], []

    def quantize(self, model, home, samples):
        home.mkdir(parents=True, exist_ok=True)
        source, target = home / "source.onnx", home / "quantized.onnx"
        run(self.tools / "ort-optimize", model, "--level", "1", "-q", "--no-verify", "-o", source)
        run(self.tools / "ort-quantize", "static", source, "-q", "-o", target, *self.options,
            *samples)
        return target

    def judge(self, name, model, calibrating, judged, *more):
        """Adds a row; the report of the tool, or None."""
        home = self.scratch / name
        try:
            target = self.quantize(model, home, calibrating)
            if name in LOGITS:
                model = with_softmax(model, LOGITS[name], home / "float_softmax.onnx")
                target = with_softmax(target, LOGITS[name], home / "quantized_softmax.onnx")
            report = json.loads(run(self.tools / "ort-quantize", "evaluate", model, target,
                                    "--margin", MARGIN, "--json", *judged, *more))
        except RuntimeError as error:
            self.rows.append({"model": name, "why": str(error)})
            self.failed.append(f"{name}: {error}")
            print(f"{name:28} {error}", flush=True)
            return None
        for output in report["outputs"]:
            if "not_compared" not in output and output["rows"]:
                self.add(name, output)
        return report

    def add(self, name, output):
        classes = output["margin"] is None
        row = {"model": name, "output": output["name"], "rows": output["rows"],
               "agreeing": output["agreeing"], "clear_rows": output["clear_rows"],
               "clear_agreeing": output["clear_agreeing"], "sqnr_db": output["sqnr_db"],
               "passed": classes or output["clear_rows"] == 0 or
               LOGITS.get(name) == output["name"] or
               output["clear_agreeing"] >= SHARE * output["clear_rows"]}
        self.rows.append(row)
        share = 100 * output["agreeing"] / output["rows"]
        clear = "" if not output["clear_rows"] else \
            f"{100 * output['clear_agreeing'] / output['clear_rows']:7.2f} % of {output['clear_rows']:6}"
        sqnr = "" if classes else "exact" if output["exact"] else f"{output['sqnr_db'] or 0:.2f}"
        print(f"{name:28} {output['name'][:24]:24} {share:7.2f} % of {output['rows']:6} {clear:20} "
              f"{sqnr:>7} {'' if row['passed'] else 'FAIL'}", flush=True)
        if not row["passed"]:
            self.failed.append(f"{name}: {output['name']}: {clear.strip()} clear answers stay")


def recorded_sets(folder):
    """Of sets with the same inputs all; -i options."""
    return [f"-i{path}" for path in sorted(folder.glob("test_data_set_*"))]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bin", type=lambda p: pathlib.Path(p).resolve())
    parser.add_argument("scratch", type=pathlib.Path)
    parser.add_argument("models", type=pathlib.Path)
    parser.add_argument("--only", default="*")
    parser.add_argument("--options", default="")
    parser.add_argument("--json", type=pathlib.Path)
    settings = parser.parse_args()
    bench = Bench(settings)

    def wanted(name):
        return any(fnmatch.fnmatch(name, glob) for glob in settings.only.split(","))
    print(f"{'model':28} {'output':24} {'all answers':>19} {f'margin above {MARGIN}':>20} {'SQNR dB':>7}")
    for name, make, batch in DRAWN:
        if not wanted(name):
            continue
        calibrating, judged = make()
        home = settings.scratch / name
        bench.judge(name, settings.models / name / "model.onnx",
                    save(home / "calibrating", calibrating, batch),
                    save(home / "judged", judged, batch))
    for name, given, flat in DIGITS:
        if not wanted(name):
            continue
        calibrating, judged, labels = sets.digits(given, flat)
        home = settings.scratch / name
        model = settings.models / name / "model.onnx" if flat else \
            pathlib.Path(__file__).resolve().parents[2] / "models" / "digits.onnx"
        inputs = save(home / "judged", judged, len(labels))
        np.save(home / "labels.npy", labels.astype(np.int64))
        report = bench.judge(name, model, save(home / "calibrating", calibrating, 32), inputs,
                             "--labels", home / "labels.npy")
        if report:
            found = report["accuracy"]
            lost = found["float_correct"] - found["quantized_correct"]
            print(f"{'':28} {lost} of {found['labels']} right answers lost "
                  f"(float {found['float_correct']})")
            bench.rows[-1]["lost"] = lost
            if lost > LOST:
                bench.failed.append(f"{name}: {lost} of {found['labels']} digits lost")
    for name in RECORDED:
        samples = recorded_sets(settings.models / name)
        if wanted(name) and samples:
            bench.judge(name, settings.models / name / "model.onnx", samples, samples)
    if settings.json:
        settings.json.write_text(json.dumps(bench.rows, indent=1))
    for text in bench.failed:
        print("FAIL", text)
    return 1 if bench.failed else 0


if __name__ == "__main__":
    sys.exit(main())
