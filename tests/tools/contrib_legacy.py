"""Operators that onnxruntime had before ONNX did, and small utilities (see make_contrib.py)."""
import numpy as np
import onnxruntime
from contrib_case import (F, F16, F64, I16, I32, I64, MS, STRING, U32, U64, ints, keep, real,
                          scalar, write)
from onnx import helper, numpy_helper


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


def tokenizer():
    def tokens(name, texts, **attributes):
        write(f"tokenizer_{name}", "Tokenizer", dict(x=np.array(texts, object)), {"y": STRING},
              {"mark": 0, "pad_value": "#", "mincharnum": 1} | attributes)

    prose = ["Hello World", "I love computer science !", "", "naïve  über 日本語"]
    tokens("separator", prose, separators=[" "])
    tokens("separators", ["a,b;c", ",;", "x;;y"], separators=[",", ";"])
    tokens("separator_mark", [["a b", "c"], ["", " "]], separators=[" "], mark=1, pad_value="")
    tokens("separator_longest", ["onetwothree", "twoone"], separators=["one|onetwo", "t"])
    tokens("separator_short", ["ab c def", "日本 語"], separators=[r"\s"], mincharnum=2)
    tokens("separator_empty_match", ["abxxcd", "日本語"], separators=["x*"])
    tokens("separator_anchors", ["aba", "a\nab"], separators=["^a", r"b$"])
    tokens("separator_words", ["foo bar-baz", "über uns"], separators=[r"\b"])
    tokens("nothing_left", [["  ", " "]], separators=[" "], mark=1)
    tokens("characters", ["abc", "日本", ""], separators=[""], mark=1)
    tokens("characters_by_dot", [["ab", "c"]], tokenexp=".")
    tokens("expression", ["a1bb22 333", "", "x", "+4"], tokenexp="[0-9]+|[a-z]")
    tokens("expression_longest", ["ababab abc", "cab"], tokenexp="ab|abab|c")
    tokens("expression_lazy", ["aaa", "baa"], tokenexp="a+?")
    tokens("expression_short", ["aa b ccc", "日本 語"], tokenexp=r"[^\s]+", mincharnum=2, mark=1)
    tokens("expression_any_case", ["One TWO two", "ONEone"], tokenexp="(?i:one|two)")
    tokens("expression_ends", ["ab ab", "b"], tokenexp=r"^ab|ab\z|\Bb")
    tokens("expression_none", ["xyz"], tokenexp="[0-9]")
    tokens("no_rows", np.zeros((2, 0), object), separators=[" "])
    tokens("empty", np.zeros(0, object), tokenexp="a")


def masked_pooling():
    for name, shape, mask_shape, attributes in (
            ("1d", (2, 3, 9), (1, 1, 9), {"kernel_shape": [3], "strides": [2], "pads": [1, 1]}),
            ("2d", (1, 3, 6, 5), (1, 1, 6, 5), {"kernel_shape": [2, 3], "pads": [0, 1, 1, 1]}),
            ("2d_planes", (2, 3, 4, 5), (2, 3, 4, 5), {"kernel_shape": [2, 2]}),
            ("2d_same", (1, 2, 5, 5), (1, 2, 5, 5), {"kernel_shape": [3, 3], "strides": [2, 2],
                                                    "auto_pad": "SAME_UPPER"}),
            ("3d", (1, 2, 4, 3, 5), (1, 1, 4, 3, 5), {"kernel_shape": [2, 2, 2],
                                                     "strides": [1, 1, 2]}),
            ("column", (1, 2, 9, 1), (1, 1, 9, 1), {"kernel_shape": [3, 1], "pads": [1, 0, 1, 0]}),
            ("3d_column", (1, 2, 4, 6, 1), (1, 1, 4, 6, 1), {"kernel_shape": [3, 2, 1]})):
        write(f"maxpool_with_mask_{name}", "MaxpoolWithMask",
              dict(x=real(*shape), mask=ints(4, *mask_shape)), {"y": F}, attributes)


def dynamic_pads():
    for name, x, w, pads, more, attributes in (
            ("1d", (2, 3, 6), (3, 2, 3), [1, 2], None, {"strides": [2]}),
            ("2d", (1, 4, 5, 4), (4, 3, 3, 2), [1, 0, 2, 1], 6,
             {"strides": [2, 1], "group": 2, "dilations": [1, 2]}),
            ("2d_output_padding", (1, 2, 3, 3), (2, 2, 3, 3), [1, 1, 1, 1], 2,
             {"strides": [2, 2], "output_padding": [1, 0]}),
            ("2d_same", (1, 2, 3, 4), (2, 2, 3, 3), [0, 0, 0, 0], None,
             {"strides": [2, 2], "auto_pad": "SAME_LOWER"})):
        given = dict(x=real(*x), w=real(*w), pads=np.array(pads, np.int64))
        if more:
            given["b"] = real(more)
        write(f"conv_transpose_pads_{name}", "ConvTransposeWithDynamicPads", given, {"y": F},
              attributes)
        if name == "2d":
            write("conv_transpose_pads_constant", "ConvTransposeWithDynamicPads", given, {"y": F},
                  attributes, ("pads", "w"))


def sparse_product(name, kind, a, b, **attributes):
    """onnxruntime gets A as a sparse tensor, for which Python needs pairs of places; we get it dense,
    or with `_constant` as a sparse initializer, which onnxruntime would make dense and refuse."""
    at = np.ascontiguousarray(np.argwhere(a).astype(np.int64))
    device = onnxruntime.OrtDevice.make("cpu", 0)
    sparse = onnxruntime.SparseTensor.sparse_coo_from_numpy(list(a.shape), a[a != 0], at, device)
    node = helper.make_node("SparseToDenseMatMul", ["a", "b"], ["y"], domain=MS, **attributes)
    fed = [helper.make_value_info("a", helper.make_sparse_tensor_type_proto(kind, [None, None])),
           helper.make_tensor_value_info("b", kind, b.shape)]
    graph = helper.make_graph([node], name, fed, [helper.make_tensor_value_info("y", kind, None)])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(MS, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    values = {"a": onnxruntime.OrtValue.ort_value_from_sparse_tensor(sparse),
              "b": onnxruntime.OrtValue.ortvalue_from_numpy(b)}
    y = onnxruntime.InferenceSession(model.SerializeToString()).run(None, values)[0]
    form = {"op": "SparseToDenseMatMul", "rtol": 1e-5, "atol": 1e-6, "opset": 17, "domain": MS}
    keep(f"sparse_matmul_{name}", model, {"a": a, "b": b}, {"y": y}, **form)
    del graph.input[0]
    graph.sparse_initializer.append(helper.make_sparse_tensor(
        numpy_helper.from_array(a[a != 0], "a"),
        numpy_helper.from_array(np.flatnonzero(a).astype(np.int64), "places"), list(a.shape)))
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    keep(f"sparse_matmul_{name}_constant", model, {"b": b}, {"y": y}, **form)


def sparse_matmul():
    def some(dtype, *shape):
        x = real(*shape) * 4 if dtype in (np.float32, np.float64) else ints(90, *shape)
        return np.where(ints(3, *shape) == 0, x, 0).astype(dtype)

    sparse_product("float", F, some(np.float32, 5, 7), real(7, 3))
    sparse_product("turned", F, some(np.float32, 7, 5), real(3, 7), transA=1, transB=1, alpha=0.5)
    sparse_product("double", F64, some(np.float64, 4, 6), real(6, 2, dtype=np.float64), alpha=0.5)
    sparse_product("int32", I32, some(np.int32, 4, 6), ints(1 << 30, 6, 2))
    sparse_product("uint64", U64, some(np.uint64, 6, 4), ints(1 << 60, 6, 2, dtype=np.uint64),
                   transA=1)
    sparse_product("endless", F, some(np.float32, 3, 7), np.full((7, 2), np.inf, np.float32))



def attending_rnn():
    def attend(name, directions=1, steps=5, batch=3, attention=None, outputs=("y", "h", "c"),
               weights=(), more=(), **attributes):
        inputs, hidden, depth, inside, memory = 4, 6, 5, 7, 8
        width = attention or depth
        some = set(more)

        def given(key, array):
            return array if key in some else None
        feeds = dict(
            X=real(steps, batch, inputs), W=real(directions, 4 * hidden, inputs + width) / 2,
            R=real(directions, 4 * hidden, hidden) / 2, B=given("B", real(directions, 8 * hidden)),
            lens=given("lens", np.array([steps, 2, 4][:batch], np.int32)),
            H=given("H", real(directions, batch, hidden)),
            C=given("C", real(directions, batch, hidden)),
            P=given("P", real(directions, 3 * hidden)), QW=real(directions, hidden, inside),
            MW=real(directions, depth, inside), V=real(directions, inside),
            M=real(batch, memory, depth),
            M_lens=given("M_lens", np.array([3, memory, 1][:batch], np.int32)),
            AW=real(directions, depth + hidden, attention) / 2 if attention else None)
        while list(feeds.values())[-1] is None:
            feeds.popitem()
        kind = {1: "forward", 2: "bidirectional"}[directions]
        write(f"attn_lstm_{name}", "AttnLSTM", feeds,
              {k: F if k in outputs else None for k in ("y", "h", "c")},
              {"hidden_size": hidden, "direction": kind} | attributes, weights)

    constant = ("W", "R", "B", "P", "QW", "MW", "V", "AW")
    attend("plain")
    attend("layer", attention=9, more=("B",), weights=constant)
    attend("reverse", direction="reverse", more=("lens", "B", "M_lens"), weights=constant)
    attend("both", 2, attention=4, more=("B", "lens", "H", "C", "P", "M_lens"))
    attend("both_constant", 2, attention=4, weights=constant,
           more=("B", "lens", "H", "C", "P", "M_lens"))
    attend("last_only", outputs=("h", "c"), more=("B",))
    attend("functions", attention=3, more=("B", "P"), clip=0.75,
           activations=["HardSigmoid", "Softsign", "Tanh"], activation_alpha=[0.3])
    attend("coupled", input_forget=1, more=("B", "H"))

GROUPS = [early_forms, utilities, forks, crops, words, tokenizer, masked_pooling, dynamic_pads,
          sparse_matmul, attending_rnn]
