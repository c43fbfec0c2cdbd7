#!/usr/bin/env python3
"""extensions_text.py ROOT - onnxruntime-extensions: operators on texts, tokenizers and numbers, each in a model of one node."""
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto as T
from onnx import helper as h
from onnxruntime_extensions import get_library_path

DOMAIN = "ai.onnx.contrib"
TYPES = {np.dtype(object): T.STRING, np.dtype(np.int64): T.INT64, np.dtype(np.float32): T.FLOAT, np.dtype(bool): T.BOOL}
WORDS = np.array(["Hello World", "foo Bar", "", "Äpfel und Birnen"], dtype=object)
VOCABULARY = "[UNK]\n[CLS]\n[SEP]\nhello\nworld\nfoo\n##ba\n##r\nbar\n[PAD]\n[MASK]\nund\n"


def text(*words):
    return np.array(words, dtype=object)


def show(name, outputs, *arrays, **attributes):
    inputs = [f"x{i}" for i in range(len(arrays))]
    names = [f"y{i}" for i in range(len(outputs))]
    node = h.make_node(name, inputs, names, domain=DOMAIN, **attributes)
    graph = h.make_graph([node], name, [h.make_tensor_value_info(n, TYPES[a.dtype], [None] * a.ndim)
                                        for n, a in zip(inputs, arrays)],
                         [h.make_tensor_value_info(n, t, None) for n, t in zip(names, outputs)])
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17), h.make_opsetid(DOMAIN, 1)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.register_custom_ops_library(get_library_path())
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    for array in session.run(None, dict(zip(inputs, arrays))):
        print(name, array.dtype, array.shape, [round(x, 5) if isinstance(x, float) else x for x in array.ravel().tolist()])


S, I, F = T.STRING, T.INT64, T.FLOAT
show("StringUpper", [S], WORDS)
show("StringLower", [S], WORDS)
show("StringLength", [I], WORDS)
show("StringConcat", [S], WORDS, WORDS[::-1].copy())
show("StringJoin", [S], WORDS, text("-"), np.array([0]))
show("StringSplit", [I, S, I], WORDS, text(" "), np.array([True]))
show("StringRegexReplace", [S], WORDS, text("o+"), text("0"), global_replace=1)
show("StringEqual", [T.BOOL], WORDS, text("foo Bar", "foo Bar", "", "x"))
show("BasicTokenizer", [S], text("Hello, World!"), do_lower_case=1)
show("BertTokenizer", [I, I, I], text("Hello world foobar und"), vocab_file=VOCABULARY, do_lower_case=1,
     truncation_strategy_name="longest_first", max_length=-1)
show("NegPos", [F, F], np.array([1, -2, 3], np.float32))
show("Inverse", [F], np.array([[2, 1], [0, 4]], np.float32))
