"""LiteRT with XNNPACK: the models of MLPerf Tiny as published, others in the form of tflite.py.

usage of its own: TFLITE_DIR names the folder of the published files.
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


class Session:
    def __init__(self, content, threads):
        self.engine = Interpreter(model_content=content, num_threads=threads)

    def bind(self, inputs):
        """Sizes first: the file may leave the batch open."""
        details = self.engine.get_input_details()
        for detail, array in zip(details, inputs.values()):
            self.engine.resize_tensor_input(detail["index"], array.shape)
        self.engine.allocate_tensors()
        for detail, array in zip(details, inputs.values()):
            self.engine.set_tensor(detail["index"], np.ascontiguousarray(array))
        self.run = self.engine._interpreter.Invoke      # what invoke() calls after a check

    def outputs(self):
        return {k: self.engine.get_tensor(d["index"])
                for k, d in enumerate(self.engine.get_output_details())}


def open(folder, threads):
    published = pathlib.Path(os.environ.get("TFLITE_DIR", ""), PUBLISHED.get(folder.name, "-") + ".tflite")
    if folder.name not in PUBLISHED or not published.is_file():
        raise forms.Absent("no form of this model")
    return Session(published.read_bytes(), threads)
