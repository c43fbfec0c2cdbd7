"""LiteRT with XNNPACK: the models of MLPerf Tiny as published, others in the form of tflite.py.

TFLITE_DIR names the folder of the published files.
"""
import os
import pathlib

import numpy as np
from ai_edge_litert.interpreter import Interpreter

from peers import forms

PUBLISHED = {"mlperf_tiny_kws_fp32": "kws_ref_model_float32",
             "mlperf_tiny_kws_int8": "kws_ref_model",
             "mlperf_tiny_resnet8_fp32": "pretrainedResnet",
             "mlperf_tiny_resnet8_int8": "pretrainedResnet_quant",
             "mlperf_tiny_vww_fp32": "vww_96_float",
             "mlperf_tiny_vww_int8": "vww_96_int8"}


def axes_of(detail, array):
    """The axes of the ONNX value in the tensor's order: a file that tflite.py wrote names them."""
    _, bar, axes = detail["name"].rpartition("|")
    return [int(a) for a in axes.split(",") if a] if bar else list(range(array.ndim))


class Session:
    def __init__(self, path, threads):
        self.engine = Interpreter(model_path=str(path), num_threads=threads)

    def bind(self, inputs):
        """Sizes first: the file may leave the batch open."""
        details = self.engine.get_input_details()
        arrays = [a.transpose(axes_of(d, a)) for d, a in zip(details, inputs.values())]
        for detail, array in zip(details, arrays):
            if list(detail["shape"]) != list(array.shape):
                self.engine.resize_tensor_input(detail["index"], array.shape)
        self.engine.allocate_tensors()
        for detail, array in zip(details, arrays):
            self.engine.set_tensor(detail["index"], np.ascontiguousarray(array, detail["dtype"]))
        self.run = self.engine._interpreter.Invoke      # what invoke() calls after a check

    def outputs(self):
        made = {}
        for k, detail in enumerate(self.engine.get_output_details()):
            array = self.engine.get_tensor(detail["index"])
            made[k] = array.transpose(np.argsort(axes_of(detail, array)))
        return made


def open(folder, threads):
    published = pathlib.Path(os.environ.get("TFLITE_DIR", ""),
                             PUBLISHED.get(folder.name, "-") + ".tflite")
    if published.is_file():
        return Session(published, threads)
    with forms.written(folder, "tflite.py", "tflite") as path:
        return Session(path, threads)
