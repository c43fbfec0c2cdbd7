#!/usr/bin/env python3
"""int8 forms of the float models, as onnxruntime.quantization makes them, and as ort-quantize does.

usage: int8.py OUTPUT_DIR MODELS_DIR TOPOLOGIES_DIR NETS_DIR [PATTERN...]

Writes OUTPUT_DIR/NAME_FORM/model.onnx and inputs.npz of the names that a pattern takes, again when
the float model, this file, onnxruntime or (for own_static) ort-quantize is another one (OUTPUT_DIR/NAME_FORM/made_of says of what
they were made). FORM is one of

    static_qdq            calibrated; Q and DQ around float operators
    static_qdq_channels   the same with a scale for each output channel of a weight
    static_qop            calibrated; QLinearConv and its like
    dynamic               activations by the range that each run finds
    own_static            by `ort-quantize static`, on the same four samples

Activations are uint8, weights int8 and symmetric: what processors with VNNI multiply. Ranges are
those of four runs: the bench's input, and three that have its numbers in another order.
"""
import collections
import fnmatch
import hashlib
import logging
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnxruntime import quantization

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from peers import forms

TOOL = pathlib.Path(__file__).resolve().parents[3] / "build/bin/ort-quantize"
CONVOLUTIONAL = ["static_qdq", "static_qdq_channels", "static_qop", "own_static"]
ENCODER = ["static_qdq", "static_qop", "dynamic", "own_static"]
SOURCES = {"resnet50": CONVOLUTIONAL, "mobilenet_v2": CONVOLUTIONAL,
           "efficientnet_lite0": CONVOLUTIONAL, "yolox_nano": CONVOLUTIONAL,
           "minilm_l6_v2": ENCODER + ["static_qdq_channels"], "bert_base": ENCODER,
           "whisper_tiny_encoder": ENCODER, "text_encoder": ["dynamic"],
           "text_decoder": ["dynamic"], "speech_lstm": ["dynamic"]}
ERROR = 3       # of onnxruntime's log
OPSET = 13      # the first with a scale for each channel
U8, S8 = quantization.QuantType.QUInt8, quantization.QuantType.QInt8


class Draws(quantization.CalibrationDataReader):
    """The inputs as they are, and turned along their last axis; of numbers, stronger ones too."""

    def __init__(self, inputs):
        self.left = [self.changed(inputs, how) for how in (
            lambda a: a, lambda a: a[..., ::-1], lambda a: np.roll(a, a.shape[-1] // 2, -1),
            lambda a: a * a.dtype.type(1.25) if a.dtype.kind == "f" else a)]

    @staticmethod
    def changed(inputs, how):
        return {name: np.ascontiguousarray(how(a)) if a.ndim else a for name, a in inputs.items()}

    def get_next(self):
        return self.left.pop(0) if self.left else None


def unshare_biases(graph):
    """A vector that an Add and a Gemm share gets one form, which QGemm can't read."""
    readers = collections.Counter(name for node in graph.node for name in node.input)
    vectors = {t.name: t for t in graph.initializer if len(t.dims) == 1 and readers[t.name] > 1}
    for node in graph.node:
        bias = vectors.get(node.input[2]) if len(node.input) > 2 else None
        if node.op_type == "Gemm" and bias is not None:
            own = graph.initializer.add()
            own.CopyFrom(bias)
            own.name = node.input[2] = "%s of %s" % (bias.name, node.name)


def prepared(source, place):
    """What the quantizers ask for: constants folded, norms in their convolutions, shapes known."""
    model = onnx.load(str(source / "model.onnx"))
    if next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx")) < OPSET:
        model = onnx.version_converter.convert_version(model, OPSET)
    raw, path = place / "raw.onnx", place / "float.onnx"
    onnx.save(model, str(raw))
    quantization.shape_inference.quant_pre_process(str(raw), str(path), skip_symbolic_shape=True)
    model = onnx.load(str(path))
    unshare_biases(model.graph)
    onnx.save(model, str(path))
    return path


def write_own(source, inputs, path):
    with tempfile.TemporaryDirectory() as folder:
        draws = Draws(inputs)
        for k in range(len(draws.left)):
            np.savez("%s/%d.npz" % (folder, k), **draws.get_next())
        subprocess.run([TOOL, "static", "-q", source / "model.onnx", "-i", folder, "-o", path],
                       check=True)


def write(form, source, model, inputs, path):
    if form == "own_static":
        write_own(source, inputs, path)
        return
    if form == "dynamic":
        quantization.quantize_dynamic(model, path, weight_type=S8)
        return
    formats = quantization.QuantFormat
    way = formats.QOperator if form == "static_qop" else formats.QDQ
    quantization.quantize_static(model, path, Draws(inputs), way, activation_type=U8,
                                 weight_type=S8, per_channel=form.endswith("_channels"))


def digest(source, form):
    files = [*source.glob("**/*"), pathlib.Path(__file__), *([TOOL] if form == "own_static" else [])]
    return "%s %s\n" % (onnxruntime.__version__, forms.digest(files))


def make(source, kinds, folder):
    """The forms of one model that aren't there yet."""
    made_of = {kind: digest(source, kind) for kind in kinds}
    places = {kind: folder / ("%s_%s" % (source.name, kind)) for kind in kinds}
    stale = [k for k, p in places.items()
             if not (p / "made_of").exists() or (p / "made_of").read_text() != made_of[k]]
    if not stale:
        return
    inputs = forms.read_inputs(source)
    with tempfile.TemporaryDirectory() as own:
        model = prepared(source, pathlib.Path(own))
        for kind in stale:
            place = places[kind]
            place.mkdir(parents=True, exist_ok=True)
            write(kind, source, model, inputs, place / "model.onnx")
            np.savez(place / "inputs.npz", **inputs)
            (place / "made_of").write_text(made_of[kind])
            print(place / "model.onnx")


def main():
    folder, *places = map(pathlib.Path, sys.argv[1:5])
    patterns = sys.argv[5:] or ["*"]
    logging.disable(logging.WARNING)
    onnxruntime.set_default_logger_severity(ERROR)
    for name, kinds in SOURCES.items():
        source = next((p.resolve() / name for p in places if (p / name).exists()), None)
        kinds = [k for k in kinds
                 if any(fnmatch.fnmatch("%s_%s" % (name, k), p) for p in patterns)]
        if source and kinds:
            make(source, kinds, folder)
        elif kinds:
            print("int8: no %s to quantize here" % name, file=sys.stderr)


if __name__ == "__main__":
    main()
