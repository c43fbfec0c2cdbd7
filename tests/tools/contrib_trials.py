"""Operators that ai.onnx had on trial until opset 9, forms that were withdrawn, and forms that exporters write
beside the specification's: all that onnxruntime runs (see make_contrib.py)."""
import numpy as np
import onnx
from contrib_case import F, F16, F64, I64, STRING, ints, real, save, scalar, tensor_type, write
from onnx import helper

ML = "ai.onnx.ml"


def on_trial(name, op, inputs, attributes, kind=F, opset=9, constant=(), **more):
    write(name, op, inputs, {"y": kind}, attributes, constant, opset=opset, domain="", **more)


def trials():
    image = real(2, 3, 4, 5)
    on_trial("trial_affine", "Affine", dict(x=image), {"alpha": 0.5, "beta": -2.0})
    on_trial("trial_scaled_tanh", "ScaledTanh", dict(x=image), {"alpha": 1.7, "beta": 0.6}, opset=6)
    on_trial("trial_parametric_softplus", "ParametricSoftplus", dict(x=image),
             {"alpha": 1.7, "beta": 0.6})
    on_trial("trial_scale", "Scale", dict(x=image), {"scale": 255.0}, opset=1)
    on_trial("trial_scale_default", "Scale", dict(x=image), {})
    on_trial("trial_image_scaler", "ImageScaler", dict(x=image),
             {"scale": 0.25, "bias": [0.5, -1.0, 2.0]}, opset=7)
    on_trial("trial_thresholded_relu", "ThresholdedRelu", dict(x=image), {"alpha": 0.3}, opset=6)
    on_trial("trial_crop", "Crop", dict(x=image), {"border": [1, 0, 2, 1]})
    on_trial("trial_crop_sized", "Crop", dict(x=image), {"border": [1, 2, 0, 0], "scale": [2, 3]},
             opset=7)
    for name, attributes in (("", {}), ("_across", {"across_channels": 1}),
                             ("_mean", {"normalize_variance": 0}),
                             ("_mean_across", {"across_channels": 1, "normalize_variance": 0})):
        on_trial(f"trial_mean_variance{name}", "MeanVarianceNormalization", dict(x=image + 3),
                 attributes, opset=8)
    at = dict(x=ints(99, 4, 6), starts=np.array([1, -5], np.int64), ends=np.array([9, -1], np.int64))
    on_trial("trial_dynamic_slice", "DynamicSlice", at, {}, onnx.TensorProto.INT32)
    on_trial("trial_dynamic_slice_axes", "DynamicSlice",
             dict(x=real(3, 4, 5), starts=np.array([2, 0], np.int32),
                  ends=np.array([-1, 2], np.int32), axes=np.array([2, 0], np.int32)), {},
             constant=("starts", "ends", "axes"))


def group_norm_18():
    x = real(2, 6, 3, 2)
    for name, dtype, kind in (("", np.float32, F), ("_double", np.float64, F64),
                              ("_half", np.float16, F16)):
        on_trial(f"group_norm_18{name}", "GroupNormalization",
                 dict(x=x.astype(dtype), scale=real(3, dtype=dtype), bias=real(3, dtype=dtype)),
                 {"num_groups": 3, "epsilon": 1e-2}, kind, opset=18, constant=("scale", "bias"),
                 rtol=1e-2 if dtype == np.float16 else 1e-3, atol=1e-2 if dtype == np.float16 else 1e-5)


def stft_rank_2():
    """A real signal without the axis of its parts, as exporters of speech models write it."""
    window = np.hanning(8).astype(np.float32)
    for name, attributes in (("", {}), ("_whole", {"onesided": 0})):
        on_trial(f"stft_rank_2{name}", "STFT",
                 dict(signal=real(2, 40), step=scalar(4, np.int64), window=window), attributes,
                 constant=("step", "window"), opset=17)
    on_trial("stft_rank_2_length", "STFT",
             dict(signal=real(1, 33), step=scalar(5, np.int64), window=None,
                  length=scalar(9, np.int64)), {}, constant=("step", "length"), opset=17)


def labels():
    """Scores so large that LOGISTIC and SOFTMAX make ties of them, and PROBIT takes the least."""
    for post in ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"):
        for targets, classes in ((3, [7, 3, 9]), (3, ["a", "b", "c"]), (1, [4, 8])):
            if targets == 1 and post != "LOGISTIC":
                continue  # two scores made of one: onnxruntime transforms them in another order
            text = isinstance(classes[0], str)
            scale = 0.02 if post == "PROBIT" else 60
            node = helper.make_node(
                "LinearClassifier", ["x"], ["label", "scores"], domain=ML,
                coefficients=np.abs(real(targets * 4) * scale).tolist(),
                intercepts=np.abs(real(targets) * scale).tolist(), post_transform=post,
                **{"classlabels_strings" if text else "classlabels_ints": classes})
            x = np.abs(real(12, 4))
            graph = helper.make_graph(
                [node], "labels", [helper.make_tensor_value_info("x", tensor_type(x), x.shape)],
                [helper.make_tensor_value_info("label", STRING if text else I64, None),
                 helper.make_tensor_value_info("scores", F, None)])
            model = helper.make_model(graph, ir_version=8, opset_imports=[
                helper.make_opsetid("", 17), helper.make_opsetid(ML, 1)])
            save(f"linear_labels_{post.lower()}_{targets}{'_text' if text else ''}", model,
                 {"x": x}, "LinearClassifier", domain=ML)


GROUPS = [trials, group_norm_18, stft_rank_2, labels]
