"""Static int8 files of other tools, made in a process of its own for each model:

usage: quant_peers.py onnxruntime SOURCE SAMPLES FOLDER     the twelve of VARIANTS
       quant_peers.py nncf SOURCE SAMPLES FOLDER            the four of NNCF_VARIANTS

SAMPLES is a folder of .npz files. FOLDER gets NAME.onnx for each, and NAME.txt with why there is
none. onnxruntime's files are made of what its quant_pre_process makes of the source. A file that is
there is whole, and stays: a run that was stopped goes on where it was.
"""
import pathlib
import sys
import traceback

import numpy as np
import onnx

METHODS = ("MinMax", "Percentile", "Entropy")
VARIANTS = [(method, per_channel, signed) for method in METHODS for per_channel in (False, True)
            for signed in (False, True)]

# preset; weights in 7 bits where processors without VNNI saturate; biases corrected without running
# the model again for each. The first two are NNCF's presets with its defaults.
NNCF_VARIANTS = {"nncf_performance": ("performance", True, True),
                 "nncf_mixed": ("mixed", True, True),
                 "nncf_mixed_exact": ("mixed", False, True),
                 "nncf_mixed_accurate": ("mixed", False, False)}


def name_of(variant):
    method, per_channel, signed = variant
    return f"{method.lower()}_{'channel' if per_channel else 'tensor'}_{'s8s8' if signed else 'u8s8'}"


def names(who):
    return [name_of(v) for v in VARIANTS] if who == "onnxruntime" else list(NNCF_VARIANTS)


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
    target, making = folder / f"{name_of(variant)}.onnx", folder / "making.onnx"
    if target.exists():
        return True
    try:
        q.quantize_static(
            str(source), str(making), Reader(), quant_format=q.QuantFormat.QDQ,
            activation_type=q.QuantType.QInt8 if signed else q.QuantType.QUInt8,
            weight_type=q.QuantType.QInt8, per_channel=per_channel,
            calibrate_method=getattr(q.CalibrationMethod, method),
            calibration_cache_path=str(folder / f"{source.stem}_{method}.json"))
        session(making)
        making.rename(target)
    except Exception:  # pylint: disable=broad-except
        target.with_suffix(".txt").write_text(traceback.format_exc())
        return False
    target.with_suffix(".txt").unlink(missing_ok=True)
    return True


def make_onnxruntime(source, feeds, folder):
    if all((folder / f"{name}.onnx").exists() for name in names("onnxruntime")):
        return
    for form in forms(source, folder):
        if sum([make_variant(form, feeds, folder, variant) for variant in VARIANTS]):
            return


def make_nncf_variant(given, feeds, target, variant):
    import nncf
    from nncf.quantization.advanced_parameters import OverflowFix
    from onnx_runs import session
    preset, seven_bits, fast = variant
    making = target.with_name("making.onnx")
    if target.exists():
        return
    more = {} if seven_bits else {"advanced_parameters": nncf.AdvancedQuantizationParameters(
        overflow_fix=OverflowFix.DISABLE)}
    try:
        types = {node.op_type for node in onnx.load(given, load_external_data=False).graph.node}
        kind = nncf.ModelType.TRANSFORMER if "Softmax" in types and "Conv" not in types else None
        made = nncf.quantize(onnx.load(given), nncf.Dataset(feeds), subset_size=len(feeds),
                             preset=nncf.QuantizationPreset(preset), model_type=kind,
                             fast_bias_correction=fast, **more)
        onnx.save(made, str(making))
        session(making)
        making.rename(target)
    except Exception:  # pylint: disable=broad-except
        target.with_suffix(".txt").write_text(traceback.format_exc())


def make_nncf(source, feeds, folder):
    given = folder / "raised.onnx"
    try:
        raised(source, given)
    except Exception:  # pylint: disable=broad-except
        given = source
    for name, variant in NNCF_VARIANTS.items():
        make_nncf_variant(given, feeds, folder / f"{name}.onnx", variant)


def main():
    who, source, given, folder = sys.argv[1], *map(pathlib.Path, sys.argv[2:5])
    {"onnxruntime": make_onnxruntime, "nncf": make_nncf}[who](source, samples(given), folder)


if __name__ == "__main__":
    main()
