"""Weights and activations in 8 bits and fewer (see make_contrib.py)."""
import ml_dtypes
import numpy as np
from contrib_case import (BF16, F, F16, F64, I8, I16, U8, U16, bfloat16, ints, real, scalar,
                          write)


def channels_last():
    def conv(name, x_type, w_type, scales=1, bias=True, **attributes):
        signed = x_type == np.int8
        x = ints(127 if signed else 255, 1, 6, 5, 4, dtype=x_type, low=-128 if signed else 0)
        group = attributes.get("group", 1)
        w = ints(120, 6, 4 // group, 3, 3, dtype=w_type, low=-120 if w_type == np.int8 else 0)
        write(f"qlinear_conv_{name}", "QLinearConv",
              dict(x=x, xs=scalar(0.02), xz=scalar(3, x_type), w=w,
                   ws=np.linspace(0.001, 0.003, scales).astype(np.float32).reshape(
                       (scales,) if scales > 1 else ()),
                   wz=np.zeros(scales if scales > 1 else (), w_type), ys=scalar(0.05),
                   yz=scalar(5, x_type), b=ints(500, 6, low=-500) if bias else None),
              {"y": I8 if signed else U8}, attributes | {"channels_last": 1},
              ("w", "b", "ws", "wz"), rtol=0, atol=1)
    conv("nhwc", np.uint8, np.int8, scales=6, pads=[1, 1, 1, 1])
    conv("nhwc_grouped", np.uint8, np.uint8, group=2, strides=[2, 1], dilations=[1, 2],
         pads=[1, 0, 2, 1], bias=False)
    conv("nhwc_signed", np.int8, np.int8, auto_pad="SAME_UPPER")
    write("qlinear_conv_nchw", "QLinearConv",
          dict(x=ints(255, 1, 2, 7, dtype=np.uint8), xs=scalar(0.02), xz=scalar(3, np.uint8),
               w=ints(100, 3, 2, 3, dtype=np.int8, low=-100), ws=scalar(0.002),
               wz=scalar(0, np.int8), ys=scalar(0.05), yz=scalar(5, np.uint8)), {"y": U8}, {},
          rtol=0, atol=1)
    write("nhwc_max_pool", "NhwcMaxPool", dict(x=ints(255, 2, 6, 5, 3, dtype=np.uint8)), {"y": U8},
          {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]})
    write("nhwc_max_pool_ceil", "NhwcMaxPool",
          dict(x=ints(127, 1, 7, 4, 2, low=-128, dtype=np.int8)), {"y": I8},
          {"kernel_shape": [3, 2], "strides": [2, 2], "ceil_mode": 1,
                      "dilations": [1, 2]})
    write("nhwc_max_pool_1d", "NhwcMaxPool", dict(x=ints(127, 1, 7, 5, low=-128, dtype=np.int8)),
          {"y": I8}, {"kernel_shape": [3], "auto_pad": "SAME_LOWER"})


def quantize_types():
    for name, dtype, low, high in (("u16", np.uint16, 0, 60000), ("i16", np.int16, -30000, 30000),
                                   ("i8", np.int8, -128, 127)):
        write(f"quantize_{name}", "QuantizeLinear",
              dict(x=real(3, 4) * 3, scale=np.array([0.1, 0.001, 0.3, 0.02], np.float32),
                   zero=ints(high // 4, 4, dtype=dtype, low=low // 4)),
              {"y": {"u16": U16, "i16": I16, "i8": I8}[name]}, {"axis": -1})
        write(f"dequantize_{name}", "DequantizeLinear",
              dict(x=ints(high, 3, 4, dtype=dtype, low=low), scale=scalar(0.001),
                   zero=scalar(5, dtype)), {"y": F}, {})
    write("dequantize_i32", "DequantizeLinear",
          dict(x=ints(1 << 20, 3, 4, dtype=np.int32, low=-(1 << 20)),
               scale=np.array([0.5, 0.25, 2], np.float32), zero=None), {"y": F}, {"axis": 0})
    write("quantize_no_zero", "QuantizeLinear",
          dict(x=real(2, 3) * 9, scale=scalar(0.1)), {"y": U8}, {})


def blobs():
    def bnb4(name, k, n, block, kind, rows=(3,)):
        write(f"matmul_bnb4_{name}", "MatMulBnb4",
              dict(a=real(*rows, k), b=ints(256, (n * k + 1) // 2, dtype=np.uint8),
                   absmax=np.abs(real(-(-n * k // block)))), {"y": F},
              {"K": k, "N": n, "block_size": block, "quant_type": kind}, ("b", "absmax"))
    bnb4("fp4", 32, 5, 16, 0)
    bnb4("nf4", 24, 7, 64, 1, rows=(2, 1))
    for name, kind, head in (("fpq4_symmetric", 0, 4), ("fpq4_zeros", 1, 5)):
        k, n = 50, 5
        blob = ints(256, n * -(-k // 32), head + 16, dtype=np.uint8)
        blob[:, :4] = np.abs(real(len(blob), 1)).view(np.uint8)
        blob[:, 4] = blob[:, 4] & 15 if head == 5 else blob[:, 4]
        write(f"matmul_{name}", "MatMulFpQ4",
              dict(a=real(3, k), b=blob.reshape(-1), shape=np.array([k, n], np.int64)), {"y": F},
              {"blk_quant_type": kind}, ("b", "shape"))


def quantized_halves():
    """Scales of which many results end in exact halves: the order of roundings shows."""
    def case(name, op, ratio, a_shape, b_shape, dtype=np.uint8):
        low, high, result = (0, 256, U8) if dtype == np.uint8 else (-128, 128, I8)
        write(name, op,
              dict(a=ints(high, *a_shape, dtype=dtype, low=low), a_scale=scalar(0.03),
                   a_zero=scalar(low + 77, dtype),
                   b=ints(high, *b_shape, dtype=dtype, low=low), b_scale=scalar(0.03),
                   b_zero=scalar(low + 130, dtype), y_scale=scalar(0.03 * ratio),
                   y_zero=scalar(low + 101, dtype)), {"y": result}, {}, rtol=0, atol=0)
    case("qlinear_add_halves", "QLinearAdd", 2, (3, 5, 70), (3, 5, 70))
    case("qlinear_add_halves_s8", "QLinearAdd", 6, (3, 5, 70), (3, 5, 70), np.int8)
    case("qlinear_add_halves_single", "QLinearAdd", 6, (3, 5, 70), ())
    case("qlinear_add_halves_columns", "QLinearAdd", 6, (1, 5, 70), (3, 5, 1))
    case("qlinear_mul_halves", "QLinearMul", 2, (3, 5, 70), (3, 5, 70))
    case("qlinear_mul_halves_row", "QLinearMul", 0.6, (3, 5, 70), (70,), np.int8)


def small_floats():
    def gather(name, dtype, scales, index, axis=0, **attributes):
        write(f"gather_blocks_{name}", "GatherBlockQuantized",
              dict(data=(real(5, 32) * 2).astype(dtype), index=np.array(index, np.int64),
                   scales=np.abs(real(*scales))), {"y": F},
              {"gather_axis": axis, "quantize_axis": 1 - axis} | attributes, ("data",), opset=23)
    gather("f8", ml_dtypes.float8_e4m3fn, (5, 2), [[1, -1], [4, 0]], block_size=16)
    gather("f8_row", ml_dtypes.float8_e5m2, (5, 1), [3, 9, 2], block_size=0)
    gather("f8_shared", ml_dtypes.float8_e4m3fn, (1, 2), [3, 2], block_size=16)
    gather("f4", ml_dtypes.float4_e2m1fn, (5, 2), [3, 0], block_size=16)
    write("gather_blocks_outside", "GatherBlockQuantized",
          dict(data=ints(255, 5, 8, dtype=np.uint8), index=np.array([1, 7, -6], np.int32),
               scales=real(5, 1)), {"y": F}, {"bits": 4, "block_size": 16}, ("data",))


def skip_norms():
    for op, short in (("SkipLayerNormalization", "skip_norm"),
                      ("SkipSimplifiedLayerNormalization", "skip_rms")):
        for name, dtype, kind, tolerance in (
                ("bf16", bfloat16, BF16, 2e-2),
                ("f16", np.float16, F16, 4e-3), ("f32", np.float32, F, 1e-5)):
            def values(*shape, kind=dtype):
                return real(*shape).astype(kind)
            inputs = dict(x=values(2, 3, 8), skip=values(2, 3, 8), gamma=values(8))
            if op == "SkipLayerNormalization":
                inputs["beta"] = values(8)
            write(f"{short}_{name}", op, inputs | {"bias": values(8)},
                  {"y": kind, "mean": None, "inv": None, "sum": kind}, {"epsilon": 1e-5},
                  rtol=tolerance, atol=tolerance)


GROUPS = [channels_last, quantize_types, blobs, small_floats, skip_norms]
