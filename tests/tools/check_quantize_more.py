#!/usr/bin/env python3
"""check_quantize_more.py - operators x types x forms of ort-quantize dynamic and weights, and OpenVINO.

usage: check_quantize_more.py [--full] [--models DIR] [--openvino PYTHON] [--keep DIR] BIN_DIR [NET...]

What check_quantize.py does for static, with its nets and nets of widths that gain: every file must
load here and in onnxruntime, pass onnx.checker, and give what onnxruntime gives within one step. So
must files that onnxruntime.quantization.quantize_dynamic and its MatMulNBitsQuantizer make of the same
nets. With --openvino, the Python of an environment that has it: files of every verb run there, too,
as near to ours as to float at least; without it that part is skipped, in words. --models: the models
of that folder, too, by both verbs.

Closes with "N passed, N failed, N skipped". Needs the packages of tests/requirements.txt.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from check_quantize import F32, Net, Report, agrees, cuts_sums, nets, run_tool

# A file without codes of what is computed has no steps: sums in another order are the difference.
FLOAT_LEVELS = 1000
DYNAMIC = [[], ["--per-tensor"], ["--symmetric-weights"], ["--plain-weights"], ["--reduce-range"]]
PLAIN = {"matmul", "matmul_batched", "gemm", "gemm_scaled", "attention", "cached", "table", "tied", "conv",
         "conv_grouped", "branches", "loop", "scan", "LSTM", "LSTMBoth", "GRU", "lstm"}


def wide_nets():
    def wide(n):
        y = n.op("Relu", n.op("Add", n.op("MatMul", n.input(2, 3, 128), n.weight(128, 64)), n.weight(64)))
        return n.op("MatMul", y, n.weight(64, 32))

    def wide_gemm(n):
        return n.op("Gemm", n.input(3, 128), n.weight(64, 128), n.weight(64), transB=1)

    def wide_scaled(n):
        return n.op("Gemm", n.input(3, 128), n.weight(64, 128), n.weight(64), transB=1, alpha=0.3, beta=-2.0)

    def ragged(n):
        """No whole number of blocks."""
        return n.op("MatMul", n.input(2, 100), n.weight(100, 33))

    def wide_table(n):
        return n.op("Gather", n.weight(300, 64), n.input(1, 5, dtype=TensorProto.INT64))

    def wide_tied(n):
        w = n.weight(64, 128)
        x = n.op("Gather", w, n.input(1, 5, dtype=TensorProto.INT64))
        return n.op("MatMul", n.op("Tanh", x), n.op("Transpose", w, perm=[1, 0]))

    def tied_straight(n):
        """The product has channels in the table's columns."""
        w = n.weight(64, 128)
        x = n.op("Gather", w, n.input(1, 5, dtype=TensorProto.INT64))
        return n.op("Add", x, n.op("MatMul", n.op("MatMul", n.op("Tanh", x), n.weight(128, 64)), w))

    def tied_scaled(n):
        w = n.weight(64, 128)
        x = n.op("Gather", w, n.input(5, dtype=TensorProto.INT64))
        return n.op("Gemm", n.op("Tanh", x), w, transB=1, alpha=-0.25)

    def tied_twice(n):
        """Two products have channels along different axes of it."""
        w = n.weight(64, 128)
        return n.op("Gemm", n.op("Relu", n.op("MatMul", n.input(3, 64), w)), w, transB=1)

    def fused_attention(n):
        x = n.op("Attention", n.input(1, 6, 64), n.weight(64, 192), n.weight(192), domain="com.microsoft", num_heads=4)
        return n.op("MatMul", n.op("Reshape", x, n.constant(np.int64([1, 6, 64]))), n.weight(64, 64))

    return {f.__name__: f for f in (wide, wide_gemm, wide_scaled, ragged, wide_table, wide_tied, tied_straight, tied_scaled,
                                    tied_twice, fused_attention)}


def dynamic_modes():
    for weights in ("int8", "uint8"):
        for extra in DYNAMIC:
            yield ["dynamic", "--weight-type", weights, "--small", *extra], 255
    yield ["dynamic", "--small", "--convolutions", "--computed-products"], 255


def weights_modes(full):
    for bits in ("2", "4", "8"):
        for block in ("16", "32", "128") if full else ("32",):
            for form in ("nbits", "qdq"):
                for extra in ([], ["--asymmetric-weights"]):
                    yield ["weights", "--bits", bits, "--block-size", block, "--form", form, "--tables", *extra], \
                        FLOAT_LEVELS
    yield ["weights", "--bits", "4", "--block-size", "column", "--form", "qdq"], FLOAT_LEVELS
    yield ["weights", "--bits", "4", "--method", "hqq"], FLOAT_LEVELS
    yield ["weights", "--bits", "4", "--accuracy-level", "4"], 100  # rows are rounded to 8 bits by blocks


def older_than_type(path):
    """Types that the installed onnxruntime has in no operator: their opset is ahead of it."""
    model = onnx.load(path)
    dtypes = {t.data_type for t in model.graph.initializer}
    return "2-bit tensors, opset 25" if dtypes & {getattr(TensorProto, "INT2", -1), getattr(TensorProto, "UINT2", -1)} \
        else None


def save_net(name, build, folder):
    n = Net(17)
    results = build(n)
    model = n.model(*(results if isinstance(results, tuple) else (results,)))
    path = folder / "float.onnx"
    onnx.save(model, path)
    return n, path


def check_net(args, name, build, folder, report):
    n, path = save_net(name, build, folder)
    for command, levels in [*dynamic_modes(), *weights_modes(args.full)]:
        what = " ".join([name, *command])
        made = folder / "q.onnx"
        made.unlink(missing_ok=True)
        status, said = run_tool(args.bin / "ort-quantize", command[0], path, *command[1:], "-o", made)
        if status == 3 and "nothing" in said or status == 2 and "no " in said:
            continue  # this net has nothing for the verb
        why = f"ort-quantize: {said}" if status else agrees(args.bin, made, n.feeds(0), levels, folder)
        rare = made.exists() and older_than_type(made)
        if why and why.startswith("onnxruntime:") and rare:
            report.rare.add(rare)
            report.skipped += 1
            continue
        report.ok(not why, what, why)
        if why and args.keep and made.exists():
            args.keep.mkdir(exist_ok=True)
            (args.keep / (what.replace(" ", "_") + ".onnx")).write_bytes(made.read_bytes())
    check_theirs(args, name, n, path, folder, report)


def their_files(path, folder):
    from onnxruntime import quantization as oq
    try:
        from onnxruntime.quantization import matmul_nbits_quantizer as nbits
    except ImportError:  # it needs onnx_ir
        nbits = None
    for weight in (oq.QuantType.QInt8, oq.QuantType.QUInt8):
        for channels in (False, True):
            def dynamic(made, weight=weight, channels=channels):
                oq.quantize_dynamic(str(path), str(made), weight_type=weight, per_channel=channels)
            yield f"quantize_dynamic {weight} {channels}", dynamic, 255
    for bits in (4, 8) if nbits else ():
        for form in (oq.QuantFormat.QOperator, oq.QuantFormat.QDQ):
            def blocks(made, bits=bits, form=form):
                q = nbits.MatMulNBitsQuantizer(onnx.load(path), bits=bits, block_size=32, is_symmetric=True,
                                               quant_format=form)
                q.process()
                q.model.save_model_to_file(str(made))
            yield f"MatMulNBitsQuantizer {bits} {form}", blocks, FLOAT_LEVELS


def check_theirs(args, name, n, path, folder, report):
    for what, make, levels in their_files(path, folder):
        made = folder / "theirs.onnx"
        try:
            make(made)
        except Exception:  # noqa: BLE001  it refuses the net
            report.skipped += 1
            continue
        why = agrees(args.bin, made, n.feeds(0), levels, folder)
        if why and why.startswith(("onnxruntime:", "onnx.checker:")):  # it doesn't run what it wrote
            report.skipped += 1
        else:
            report.ok(not why, f"{name} {what}", why)


# ---- models that are there

def read_set(path, session):
    feeds = {}
    for x, f in zip(session.get_inputs(), sorted(path.glob("input_*.pb"), key=lambda f: int(f.stem[6:]))):
        t = onnx.TensorProto()
        t.ParseFromString(f.read_bytes())
        feeds[x.name] = numpy_helper.to_array(t)
    return feeds


def check_model(args, root, folder, report):
    path, data = root / "model.onnx", root / "test_data_set_0"
    if not path.exists() or not data.exists() or path.stat().st_size > 30 << 20:
        return
    try:
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        feeds = read_set(data, session)
        onnx.checker.check_model(str(path), full_check=True)
    except Exception:  # noqa: BLE001  nothing to compare with
        report.skipped += 1
        return
    for command, levels in ((["dynamic"], 255), (["weights"], FLOAT_LEVELS)):
        made = folder / "m.onnx"
        made.unlink(missing_ok=True)
        status, said = run_tool(args.bin / "ort-quantize", command[0], path, "-i", data, "-o", made, "--quiet")
        if not made.exists() and status in (2, 3):
            report.skipped += 1
            continue
        why = f"ort-quantize: {said}" if status else agrees(args.bin, made, feeds, levels, folder)
        report.ok(not why, f"{root.name} {command[0]}", why)


# ---- OpenVINO

OPENVINO = """
import json, sys
import numpy as np
import openvino as ov
core = ov.Core()
for line in sys.stdin:
    path, feeds = line.rstrip("\\n").split("\\t")
    try:
        model = core.read_model(path)
        given = np.load(feeds)
        compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1})
        names = {n: x for x in compiled.inputs for n in x.names}
        got = compiled({names[k]: given[k] for k in given.files})
        np.savez(feeds + ".out.npz", **{str(i): got[o] for i, o in enumerate(compiled.outputs)})
        print(json.dumps(None), flush=True)
    except Exception as e:
        print(json.dumps(str(e)[:300].replace("\\n", " ")), flush=True)
"""


def sqnr(a, b):
    a, b = a.astype(np.float64), b.astype(np.float64)
    noise = ((a - b) ** 2).sum()
    return np.inf if noise == 0 else 10 * np.log10(max((a ** 2).sum(), 1e-300) / noise)


class Elsewhere:
    """One process that holds OpenVINO."""

    def __init__(self, python):
        self.process = subprocess.Popen([python, "-c", OPENVINO], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, stderr=subprocess.DEVNULL)

    def run(self, path, feeds):
        """None, or why it doesn't run; its outputs."""
        self.process.stdin.write(f"{path}\t{feeds}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        why = json.loads(line) if line else "it ended"
        if why:
            return why, None
        out = np.load(f"{feeds}.out.npz")
        return None, [out[str(i)] for i in range(len(out.files))]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


VERBS = [["static"], ["static", "--form", "qdq", "--activation-type", "int8"], ["static", "--per-tensor"], ["dynamic"],
         ["weights", "--form", "qdq"], ["weights", "--bits", "8", "--form", "qdq"]]
# OpenVINO 2026.4 gives memory that nothing wrote for Q and DQ in a branch of If; onnxruntime and ours agree.
OPENVINO_MISREADS = {("branches", "static")}
OPENVINO_NETS = ["conv", "conv_grouped", "conv_transpose", "gemm", "matmul", "attention", "cached", "branches", "loop",
                 "LSTM", "GRU", "dense_steps", "heads", "wide", "wide_gemm"]


def check_elsewhere(args, builds, folder, report):
    """OpenVINO rounds in its own way: its answers lie within the noise that codes make, with 6 dB of it allowed."""
    other = Elsewhere(args.openvino)
    for name in OPENVINO_NETS:
        if args.only and name not in args.only:
            continue
        n, path = save_net(name, builds[name], folder)
        samples = []
        for k in range(3):
            np.savez(folder / f"s{k}.npz", **n.feeds(k))
            samples += ["-i", folder / f"s{k}.npz"]
        why, _ = other.run(path, folder / "s0.npz")
        if why:
            report.skipped += 1
            print(f"skipped {name} in OpenVINO: its float model: {why[:160]}")
            continue
        for verb in VERBS:
            if (name, verb[0]) in OPENVINO_MISREADS:
                report.skipped += 1
                continue
            check_one_elsewhere(args, other, name, verb, path, samples, folder, report)
    other.close()


def check_one_elsewhere(args, other, name, verb, path, samples, folder, report):
    what = f"OpenVINO {name} {' '.join(verb)}"
    made = folder / "q.onnx"
    made.unlink(missing_ok=True)
    status, said = run_tool(args.bin / "ort-quantize", verb[0], path, *verb[1:], *samples, "-o", made, "--quiet")
    if not made.exists() and status in (2, 3):
        return
    if status:
        report.ok(False, what, said)
        return
    for model, out in ((made, "ours.npz"), (path, "float.npz")):
        run_tool(args.bin / "ort-run", model, "-i", folder / "s0.npz", "-o", folder / out, "--force")
    why, theirs = other.run(made, folder / "s0.npz")
    if why:
        report.ok(False, what, why)
        return
    ours, floats = np.load(folder / "ours.npz"), np.load(folder / "float.npz")
    names = [o.name for o in onnx.load(made).graph.output]
    bad = [f"{k}: {sqnr(ours[k], v):.1f} dB from ours, which is {sqnr(floats[k], ours[k]):.1f} dB from float"
           for k, v in zip(names, theirs)
           if not sqnr(ours[k], v) >= min(sqnr(floats[k], ours[k]) - 6, 90) and np.abs(ours[k] - v).max() > 1e-6]
    if bad and verb[0] == "static" and "--reduce-range" not in verb and cuts_sums():
        # as the report advises for such processors
        print(f"{what}: OpenVINO cuts its sums without VNNI; judged with --reduce-range")
        check_one_elsewhere(args, other, name, [*verb, "--reduce-range"], path, samples, folder, report)
        return
    report.ok(not bad, what, "; ".join(bad))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--models", type=pathlib.Path)
    parser.add_argument("--openvino")
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("only", nargs="*")
    args = parser.parse_args()
    report = Report()
    report.rare = set()
    builds = {name: b for name, b in nets().items() if name in PLAIN or name in OPENVINO_NETS} | wide_nets()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for net, build in builds.items():
            if (not args.only and net not in ("dense_steps", "heads", "conv_transpose")) or net in args.only:
                check_net(args, net, build, folder, report)
        for root in sorted(args.models.iterdir()) if args.models else []:
            if root.is_dir() and (not args.only or root.name in args.only):
                check_model(args, root, folder, report)
        if args.openvino and pathlib.Path(args.openvino).exists():
            check_elsewhere(args, builds, folder, report)
        else:
            report.skipped += 1
            print("skipped OpenVINO: no environment that has it (make bench sets up build/venv-bench)")
    for rare in sorted(report.rare):
        print(f"onnxruntime {onnxruntime.__version__} doesn't run {rare}")
    print(f"{report.passed} passed, {report.failed} failed, {report.skipped} skipped")
    return report.failed != 0


if __name__ == "__main__":
    sys.exit(main())
