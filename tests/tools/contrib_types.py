"""Element types that onnxruntime has no kernel for (see make_contrib.py): ONNX operators of domain ""
among them. Expected values are numpy's, or onnx's reference evaluator's or onnxruntime's on a type that
they have, put together here."""
import itertools

import contrib_case
import ml_dtypes
import numpy as np
import onnxruntime
from contrib_case import F, F16, F64, STRING, ints, real, scalar, tensor_type, write
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator


def one_node(op, feeds, attributes, opset):
    node = helper.make_node(op, list(feeds), ["y"], **attributes)
    graph = helper.make_graph(
        [node], op, [helper.make_tensor_value_info(k, tensor_type(v), v.shape)
                     for k, v in feeds.items()],
        [helper.make_tensor_value_info("y", tensor_type(next(iter(feeds.values()))), None)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def by_reference(op, feeds, attributes, opset):
    return ReferenceEvaluator(one_node(op, feeds, attributes, opset)).run(None, feeds)[0]


def by_onnxruntime(op, feeds, attributes, opset):
    session = onnxruntime.InferenceSession(one_node(op, feeds, attributes, opset)
                                           .SerializeToString())
    return session.run(None, feeds)[0]


def words(*shape):
    count = int(np.prod(shape))
    return np.array([f"w{k}" * (k % 3) for k in range(count)], object).reshape(shape)


def grid(*shape, dtype=np.float32):
    return contrib_case.rng.uniform(-1.4, 1.4, shape).astype(dtype)


def sampled(name, x, at, attributes, y, opset=20):
    write(name, "GridSample", dict(x=x, grid=at), {"y": tensor_type(y)}, attributes, opset=opset,
          domain="", rtol=1e-5, expected={"y": y})


def grid_sample_types():
    at = grid(2, 3, 4, 2)
    for mode, padding in itertools.product(("nearest", "linear", "cubic"),
                                           ("zeros", "border", "reflection")):
        attributes = {"mode": mode, "padding_mode": padding}
        # Weights are real: a complex sample is two real ones.
        parts = [real(2, 2, 4, 5, dtype=np.float64 if mode == "linear" else np.float32)
                 for _ in range(2)]
        wide = at.astype(parts[0].dtype)
        a, b = [by_onnxruntime("GridSample", dict(x=p, grid=wide), attributes, 20) for p in parts]
        sampled(f"grid_sample_complex_{mode}_{padding}", parts[0] + 1j * parts[1], wide,
                attributes, a + 1j * b)
        x = ints(2, 2, 1, 4, 5).astype(bool)
        if mode != "cubic":  # there the reference evaluator bounds samples by another axis
            sampled(f"grid_sample_bool_{mode}_{padding}", x, at, attributes,
                    by_reference("GridSample", dict(x=x, grid=at), attributes, 20))
        if mode == "nearest":
            text = words(2, 2, 4, 5)
            # Where each sample comes from; none is 0, and a string that isn't there is empty.
            place = (1 + np.arange(text.size, dtype=np.float64)).reshape(text.shape)
            taken = by_onnxruntime("GridSample", dict(x=place, grid=at.astype(np.float64)),
                                   attributes, 20).astype(int)
            sampled(f"grid_sample_text_{padding}", text, at.astype(np.float64), attributes,
                    np.concatenate([np.array([""], object), text.ravel()])[taken])
    x, cubic = ints(2, 1, 1, 5, 5).astype(bool), {"mode": "bicubic"}
    inner = np.float32(contrib_case.rng.uniform(-0.3, 0.3, (1, 4, 3, 2)))
    sampled("grid_sample_bool_bicubic", x, inner, cubic,
            by_reference("GridSample", dict(x=x, grid=inner), {"mode": "cubic"}, 20), opset=16)


def joined(x, image, block, strides, dilations, pads):
    """Col2Im of strings: a pixel is its parts in the order of their places in the block."""
    rank, area = len(image), int(np.prod(block))
    many = [(image[d] + pads[d] + pads[d + rank] - dilations[d] * (block[d] - 1) - 1) //
            strides[d] + 1 for d in range(rank)]
    out = np.full((x.shape[0], x.shape[1] // area, *image), "", object)
    for n, c in np.ndindex(out.shape[:2]):
        for k, place in enumerate(np.ndindex(*block)):
            for i, step in enumerate(np.ndindex(*many)):
                at = tuple(step[d] * strides[d] - pads[d] + place[d] * dilations[d]
                           for d in range(rank))
                if all(0 <= p < size for p, size in zip(at, image, strict=True)):
                    out[n, c][at] += x[n, c * area + k, i]
    return out


def col2im_text():
    for name, image, block, strides, dilations, pads in (
            ("blocks", [4, 6], [2, 3], [2, 3], [1, 1], [0, 0, 0, 0]),
            ("overlap", [3, 4], [2, 2], [1, 1], [1, 1], [0, 0, 0, 0]),
            ("pads", [5, 4], [2, 3], [2, 1], [2, 1], [1, 1, 0, 1]),
            ("row", [6], [3], [2], [1], [1, 0])):
        rank = len(image)
        many = np.prod([(image[d] + pads[d] + pads[d + rank] - dilations[d] * (block[d] - 1) - 1) //
                        strides[d] + 1 for d in range(rank)])
        x = words(2, 2 * int(np.prod(block)), int(many))
        y = joined(x, image, block, strides, dilations, pads)
        write(f"col2im_text_{name}", "Col2Im",
              dict(x=x, image=np.array(image, np.int64), block=np.array(block, np.int64)),
              {"y": STRING}, {"strides": strides, "dilations": dilations, "pads": pads},
              opset=18, domain="", expected={"y": y})


FLOAT8 = {"e4m3fn": ml_dtypes.float8_e4m3fn, "e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
          "e5m2": ml_dtypes.float8_e5m2, "e5m2fnuz": ml_dtypes.float8_e5m2fnuz}


def to_type(x, zero):
    """QuantizeLinear's last step: bytes round before the zero point is added, floats behind it."""
    if zero.dtype.kind in "iu":
        info = np.iinfo(zero.dtype)
        return np.clip(np.rint(x) + zero, info.min, info.max).astype(zero.dtype)
    top = float(ml_dtypes.finfo(zero.dtype).max)
    return np.clip(x + zero.astype(np.float64), -top, top).astype(zero.dtype)


def qlinear_product(name, a, b, y_zero, scale=np.float32, a_scale=0.5, b_scale=0.25, y_scale=2.0,
                    a_zero=0, b_zero=0):
    given = dict(a=a, a_scale=np.array(a_scale, scale), a_zero=np.array(a_zero).astype(a.dtype),
                 b=b, b_scale=np.array(b_scale, scale), b_zero=np.array(b_zero).astype(b.dtype),
                 y_scale=np.array(y_scale, scale), y_zero=y_zero)
    wide = {k: v.astype(np.float64) for k, v in given.items()}
    if wide["a_scale"].ndim:  # of each row
        wide = {k: v[..., None] if k in ("a_scale", "a_zero", "y_scale") and v.ndim else v
                for k, v in wide.items()}
    product = np.matmul(wide["a"] - wide["a_zero"], wide["b"] - wide["b_zero"])
    y = to_type(product * wide["a_scale"] * wide["b_scale"] / wide["y_scale"], y_zero)
    write(f"qlinear_matmul_{name}", "QLinearMatMul", given, {"y": tensor_type(y_zero)}, {},
          opset=21, domain="", rtol=0, atol=0, expected={"y": y})


def qlinear_matmul_float8():
    """Scales are powers of two and values short, so that sums are exact and nothing depends on
    their order."""
    def short(kind, *shape):
        return np.clip(real(*shape) * 2, -14, 14).round(0).astype(FLOAT8[kind])

    for kind in FLOAT8:
        qlinear_product(kind, short(kind, 5, 37), short(kind, 37, 19), np.array(0, FLOAT8[kind]))
    qlinear_product("e4m3fn_batch", short("e4m3fn", 2, 3, 4, 6), short("e4m3fn", 3, 6, 5),
                    np.array(0, FLOAT8["e4m3fn"]), scale=np.float16)
    qlinear_product("e5m2_saturates", short("e5m2", 4, 9), short("e5m2", 9, 3),
                    np.array(0, FLOAT8["e4m3fnuz"]), y_scale=2.0 ** -6)
    qlinear_product("e5m2_zeros", short("e5m2", 4, 9), short("e5m2", 9, 3),
                    np.array(2, FLOAT8["e5m2"]), a_zero=1, b_zero=-2,
                    scale=ml_dtypes.bfloat16)
    qlinear_product("e4m3fn_rows", short("e4m3fn", 2, 4, 9), short("e4m3fn", 9, 3),
                    np.array(0, FLOAT8["e4m3fn"]), a_scale=[0.5, 1, 2, 0.25],
                    b_scale=[1, 0.5, 2], y_scale=[1, 2, 4, 8])
    qlinear_product("e4m3fn_to_bytes", short("e4m3fn", 4, 9), short("e4m3fn", 9, 3),
                    np.array(128, np.uint8))
    qlinear_product("bytes_to_e4m3fn", ints(40, 4, 9, dtype=np.uint8), short("e5m2fnuz", 9, 3),
                    np.array(0, FLOAT8["e4m3fn"]), a_zero=11)
    qlinear_product("bytes_in_e5m2_out", ints(20, 4, 9, dtype=np.int8, low=-20),
                    ints(20, 9, 3, dtype=np.uint8), np.array(0, FLOAT8["e5m2"]), a_zero=-3,
                    b_zero=7)


def matmul_integer_to_float_half():
    for name, a_type, scale_shape, bias_shape in (("u8", np.uint8, (), None),
                                                  ("i8", np.int8, (7,), (7,)),
                                                  ("batch", np.uint8, (7,), (7,))):
        shape = (2, 5, 33) if name == "batch" else (5, 33)
        given = dict(a=ints(120, *shape, dtype=a_type), b=ints(120, 33, 7, dtype=np.int8, low=-120),
                     a_scale=scalar(0.0125, np.float16),
                     b_scale=contrib_case.rng.uniform(0.002, 0.01, scale_shape).astype(np.float16),
                     a_zero=scalar(33, a_type), b_zero=scalar(-4, np.int8),
                     bias=None if bias_shape is None else real(*bias_shape, dtype=np.float16))
        wide = {k: v.astype(np.float64) for k, v in given.items() if v is not None}
        y = np.matmul(wide["a"] - wide["a_zero"], wide["b"] - wide["b_zero"]) * \
            wide["a_scale"] * wide["b_scale"] + wide.get("bias", 0)
        write(f"matmul_integer_to_float_half_{name}", "MatMulIntegerToFloat", given, {"y": F16}, {},
              ("b", "b_zero"), rtol=1e-3, atol=0, expected={"y": y.astype(np.float16)})


def fused_conv_double():
    x, w, b = real(2, 4, 7, 6, dtype=np.float64), real(6, 2, 3, 3, dtype=np.float64), \
        real(6, dtype=np.float64)
    form = {"group": 2, "pads": [1, 1, 0, 1], "strides": [2, 1]}
    y = by_reference("Conv", dict(x=x, w=w, b=b), form, 11)
    z = real(*y.shape, dtype=np.float64)
    for name, more, act, params in (
            ("relu", z, lambda v: np.maximum(v, 0), []),
            ("clip", None, lambda v: np.clip(v, -0.5, 0.75), [-0.5, 0.75]),
            ("tanh", z, np.tanh, []), ("sigmoid", None, lambda v: 1 / (1 + np.exp(-v)), []),
            ("leaky_relu", z, lambda v: np.where(v < 0, 0.125 * v, v), [0.125]),
            ("hard_sigmoid", None, lambda v: np.clip(0.25 * v + 0.5, 0, 1), [0.25, 0.5])):
        kind = "".join(part.title() for part in name.split("_"))
        write(f"fused_conv_double_{name}", "FusedConv", dict(x=x, w=w, b=b, z=more), {"y": F64},
              form | {"activation": kind} | ({"activation_params": params} if params else {}),
              rtol=1e-12, atol=1e-12, expected={"y": act(y if more is None else y + more)})


def gather_float8():
    for kind, scale in (("e4m3fnuz", np.float32), ("e5m2fnuz", np.float16),
                        ("e5m2fnuz", np.float32)):
        data = real(5, 4, 32).astype(FLOAT8[kind])
        scales = contrib_case.rng.uniform(0.5, 2, (5, 4, 2)).astype(scale)
        at = np.array([[3, -1], [0, 4]], np.int64)
        y = (data.astype(np.float64) * np.repeat(scales.astype(np.float64), 16, 2))[at]
        write(f"gather_block_quantized_{kind}_{np.dtype(scale).name}", "GatherBlockQuantized",
              dict(data=data, at=at, scales=scales), {"y": F if scale == np.float32 else F16},
              {"block_size": 16, "gather_axis": 0, "quantize_axis": 2}, rtol=1e-3, atol=0,
              expected={"y": y.astype(scale)})


assert set(FLOAT8) == {k.removeprefix("FLOAT8").lower() for k in TensorProto.DataType.keys()
                       if k.startswith("FLOAT8") and k != "FLOAT8E8M0"}

GROUPS = [grid_sample_types, col2im_text, qlinear_matmul_float8, matmul_integer_to_float_half,
          fused_conv_double, gather_float8]
