"""Static int8 files of other tools, made in a process of its own for each model:

usage: quant_peers.py onnxruntime SOURCE SAMPLES FOLDER     the twelve of VARIANTS
       quant_peers.py nncf SOURCE SAMPLES FOLDER            nncf.onnx

SAMPLES is a folder of .npz files. FOLDER gets NAME.onnx for each, and NAME.txt with why there is
none. onnxruntime's files are made of what its quant_pre_process makes of the source.
"""
import pathlib
import sys
import traceback

import numpy as np
import onnx

METHODS = ("MinMax", "Percentile", "Entropy")
VARIANTS = [(method, per_channel, signed) for method in METHODS for per_channel in (False, True)
            for signed in (False, True)]


def name_of(variant):
    method, per_channel, signed = variant
    return f"{method.lower()}_{'channel' if per_channel else 'tensor'}_{'s8s8' if signed else 'u8s8'}"


def names(who):
    return [name_of(v) for v in VARIANTS] if who == "onnxruntime" else ["nncf"]


def samples(folder):
    return [dict(np.load(path)) for path in sorted(folder.glob("*.npz"))]


def raised(source, target):
    """Scales by channel exist from opset 13."""
    model = onnx.load(source)
    opset = next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
    if opset < 13:
        model = onnx.version_converter.convert_version(model, 13)
    onnx.save(model, target)


def forms(source, folder):
    """The source as onnxruntime wants it, and in less and less of that, for where its tools or
    those of onnx fail."""
    from onnxruntime.quantization.shape_inference import quant_pre_process
    high = folder / "raised.onnx"
    try:
        raised(source, high)
    except Exception:  # pylint: disable=broad-except
        high = None
    for k, given in enumerate([high, source]):
        target = folder / f"prepared_{k}.onnx"
        try:
            quant_pre_process(str(given), str(target), skip_symbolic_shape=True)
            yield target
        except Exception:  # pylint: disable=broad-except
            pass
        if given:
            yield given


def make_variant(source, feeds, folder, variant):
    """True where onnxruntime takes the file."""
    from onnxruntime import quantization as q
    from onnx_runs import session

    class Reader(q.CalibrationDataReader):
        def __init__(self):
            self.rest = iter(feeds)

        def get_next(self):
            return next(self.rest, None)

    method, per_channel, signed = variant
    target = folder / f"{name_of(variant)}.onnx"
    try:
        q.quantize_static(
            str(source), str(target), Reader(), quant_format=q.QuantFormat.QDQ,
            activation_type=q.QuantType.QInt8 if signed else q.QuantType.QUInt8,
            weight_type=q.QuantType.QInt8, per_channel=per_channel,
            calibrate_method=getattr(q.CalibrationMethod, method),
            calibration_cache_path=str(folder / f"{source.stem}_{method}.json"))
        session(target)
    except Exception:  # pylint: disable=broad-except
        target.unlink(missing_ok=True)
        target.with_suffix(".txt").write_text(traceback.format_exc())
        return False
    target.with_suffix(".txt").unlink(missing_ok=True)
    return True


def make_onnxruntime(source, feeds, folder):
    for form in forms(source, folder):
        if sum([make_variant(form, feeds, folder, variant) for variant in VARIANTS]):
            return


def make_nncf(source, feeds, folder):
    import nncf
    target = folder / "nncf.onnx"
    try:
        given = folder / "raised.onnx"
        raised(source, given)
        types = {node.op_type for node in onnx.load(given, load_external_data=False).graph.node}
        kind = nncf.ModelType.TRANSFORMER if "Softmax" in types and "Conv" not in types else None
        made = nncf.quantize(onnx.load(given), nncf.Dataset(feeds), subset_size=len(feeds),
                             model_type=kind, fast_bias_correction=False)
        onnx.save(made, str(target))
    except Exception:  # pylint: disable=broad-except
        target.with_suffix(".txt").write_text(traceback.format_exc())


def main():
    who, source, given, folder = sys.argv[1], *map(pathlib.Path, sys.argv[2:5])
    {"onnxruntime": make_onnxruntime, "nncf": make_nncf}[who](source, samples(given), folder)


if __name__ == "__main__":
    main()
