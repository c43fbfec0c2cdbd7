#!/usr/bin/env python3
"""write_nncf.py - a float model quantized by NNCF, for check_spellings.py.

usage: write_nncf.py SOURCE OUT SAMPLES FORM    (by the Python of build/venv-nncf)

SAMPLES is an .npz of values of the input x. FORM: mixed and performance are NNCF's presets,
transformer its model type, and exact without overflow_fix, which otherwise halves weights for
processors whose products saturate.
"""
import sys

import nncf
import numpy as np
import onnx

FORMS = {
    "mixed": {"preset": nncf.QuantizationPreset.MIXED},
    "performance": {"preset": nncf.QuantizationPreset.PERFORMANCE},
    "transformer": {"model_type": nncf.ModelType.TRANSFORMER},
    "exact": {"advanced_parameters": nncf.AdvancedQuantizationParameters(
        overflow_fix=nncf.quantization.advanced_parameters.OverflowFix.DISABLE)},
}


def main():
    source, out, given, form = sys.argv[1:5]
    samples = [{"x": x} for x in np.load(given).values()]
    made = nncf.quantize(onnx.load(source), nncf.Dataset(samples), subset_size=len(samples),
                         **FORMS[form])
    onnx.save(made, out)


if __name__ == "__main__":
    main()
