"""Operators that onnxruntime had before ONNX did, and small utilities (see make_contrib.py)."""
import numpy as np
from contrib_case import F, F16, F64, I16, I32, I64, STRING, U32, ints, real, scalar, write


def early_forms():
    write("ms_trilu", "Trilu", dict(x=real(2, 3, 4)), {"y": F}, {})
    write("ms_trilu_lower", "Trilu", dict(x=ints(9, 4, 3, dtype=np.int64), k=scalar(-1, np.int64)),
          {"y": I64}, {"upper": 0})
    write("ms_range", "Range", dict(start=scalar(2, np.int32), limit=scalar(7, np.int32)),
          {"y": I32},
          {})
    write("ms_range_down", "Range",
          dict(start=np.array([3], np.float32), limit=np.array([-1], np.float32),
               delta=scalar(-0.75)),
          {"y": F}, {})
    write("ms_pad", "Pad",
          dict(x=real(2, 3), pads=np.array([[1, 0, -1, 2]], np.int64),
               value=np.array([7], np.float32)),
          {"y": F}, {}, ("pads",))
    write("ms_pad_reflect", "Pad", dict(x=real(3, 4), pads=np.array([1, 2, 0, 1], np.int64)),
          {"y": F},
          {"mode": "reflect"})
    write("ms_gather_nd", "GatherND",
          dict(x=ints(99, 2, 3, 4), at=np.array([[0, 1], [1, -1]], np.int32)), {"y": I32}, {})
    write("ms_gather_nd_text", "GatherND",
          dict(x=np.array([["a", "bc"], ["", "d"]], object),
               at=np.array([[[0, 1]], [[1, 1]]], np.int64)),
          {"y": STRING}, {})
    for mode, padding in (("bilinear", "zeros"), ("nearest", "border"), ("bicubic", "reflection")):
        write(f"ms_grid_sample_{mode}", "GridSample",
              dict(x=real(1, 2, 4, 5), grid=real(1, 3, 2, 2)), {"y": F},
              {"mode": mode, "padding_mode": padding, "align_corners": int(mode == "nearest")})
    write("ms_expand_dims", "ExpandDims", dict(x=real(2, 3), axis=scalar(-1, np.int32)), {"y": F},
          {},
          ("axis",))
    write("ms_unique", "Unique", dict(x=np.array([2, 1, 1, 3, 4, 3], np.float32)),
          {"y": F, "at": I64, "count": I64}, {})
    write("ms_transpose_matmul", "TransposeMatMul", dict(a=real(2, 4, 3), b=real(2, 5, 4)),
          {"y": F},
          {"transA": 1, "transB": 1, "alpha": 0.5})
    write("ms_inverse", "Inverse", dict(x=real(2, 3, 3)), {"y": F}, {})
    write("ms_inverse_double", "Inverse", dict(x=real(4, 4, dtype=np.float64)), {"y": F64}, {})
    write("ms_sample_op", "SampleOp", dict(x=real(2, 3)), {"y": F}, {})


def utilities():
    write("cdist", "CDist", dict(a=real(3, 4), b=real(5, 4)), {"y": F}, {"metric": "euclidean"})
    write("cdist_squares", "CDist", dict(a=real(2, 3, dtype=np.float64),
                                         b=real(2, 3, dtype=np.float64)),
          {"y": F64}, {"metric": "sqeuclidean"})
    for shape in ((5, 7), (1, 6, 3)):
        write(f"dynamic_time_warping_{len(shape)}d", "DynamicTimeWarping",
              dict(x=ints(4, *shape).astype(np.float32)), {"path": I32}, {})
    words = np.array(["", "a", "abc", "abcd", "abcde"], object)
    for name, x, kind, attributes in (
            ("i32", ints(1 << 30, 4), U32, {}), ("i64", ints(1 << 60, 3, dtype=np.int64), I32,
                                                 {"positive": 0, "seed": 7}),
            ("f64", real(3, dtype=np.float64), U32, {}), ("text", words, U32, {"seed": 1})):
        write(f"murmur_hash_{name}", "MurmurHash3", dict(x=x), {"y": kind}, attributes)
    write("unfold_tensor", "UnfoldTensor", dict(x=real(2, 7, 3)), {"y": F},
          {"dim": 1, "size": 3, "step": 2})
    write("unfold_tensor_last", "UnfoldTensor", dict(x=ints(99, 2, 5, dtype=np.int64)), {"y": I64},
          {"size": 2})
    a = ints(30000, 2, 3, 4, dtype=np.int16, low=-30000)
    write("matmul_integer16", "MatMulInteger16",
          dict(a=a, b=ints(30000, 4, 5, dtype=np.int16, low=-30000)), {"y": I32}, {})


def forks():
    source = np.array([5, 6, 7, 8, 5, 6, 9], np.int64)
    def fork(name, now, index, guess):
        write(f"bifurcation_{name}", "BifurcationDetector",
              dict(source=source, now=np.array(now, np.int64), index=np.array(index, np.int64),
                   guess=None if guess is None else np.array(guess, np.int64)),
              {"tokens": I64, "match": I64}, {})
    fork("first", [2], 0, [5, 6, 7, 1, 1, 1, 1, 1])
    fork("all", [2, 3], [4], [5, 6, 9, 4])
    fork("none", [2, 7], 0, None)


def crops():
    for mode, size in (("bilinear", [3, 4]), ("nearest", [2, 1])):
        write(f"crop_and_resize_{mode}", "CropAndResize",
              dict(x=real(2, 2, 5, 6), rois=np.array([[0.1, 0.2, 0.9, 0.7], [0.5, -0.2, 1.1, 1]],
                                                     np.float32),
                   batch=np.array([1, 0], np.int32), size=np.array(size, np.int32)), {"y": F},
              {"mode": mode, "extrapolation_value": -3.0}, ("size",))


def words():
    letters = np.array([[3, 1, 4, 1, 5], [2, 6, 0, 0, 0], [7, 0, 0, 0, 0], [1, 2, 3, 0, 0]],
                       np.int32)
    weights = dict(W=real(4, 1, 3, 2), B=real(4), C=real(9, 2))
    write("word_conv_embedding", "WordConvEmbedding", dict(letters=letters) | weights, {"y": F},
          {}, ("W", "B", "C"))
    write("word_conv_embedding_sizes", "WordConvEmbedding", dict(letters=letters[:2]) | weights,
          {"y": F}, {"embedding_size": 4, "conv_window_size": 3, "char_embedding_size": 2})


GROUPS = [early_forms, utilities, forks, crops, words]
