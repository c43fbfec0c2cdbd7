"""Vectors of sentences by embroider (Rust, over the `ort` crate): ROOT FOLDER [make], a made model of ten words in
FOLDER, 512 numbers a sentence."""
import json
import pathlib
import sys

WORDS = "[PAD] [UNK] the cat sat on a mat dog ran".split()
WIDTH = 768  # what embroider asks of a model


def make_model(folder):
    import numpy as np
    import onnx
    from onnx import TensorProto as T
    from onnx import helper as h
    from onnx import numpy_helper
    draw = np.random.default_rng(3)
    weights = {"table": draw.normal(size=(len(WORDS), WIDTH)), "w": draw.normal(size=(WIDTH, WIDTH)) / 28,
               "b": draw.normal(size=WIDTH), "scale": np.ones(WIDTH), "shift": np.zeros(WIDTH)}
    nodes = [h.make_node("Gather", ["table", "input_ids"], ["e"]), h.make_node("MatMul", ["e", "w"], ["m"]),
             h.make_node("Add", ["m", "b"], ["a"]), h.make_node("Tanh", ["a"], ["t"]), h.make_node("Add", ["t", "e"], ["s"]),
             h.make_node("LayerNormalization", ["s", "scale", "shift"], ["last_hidden_state"], axis=-1)]
    inputs = [h.make_tensor_value_info(name, T.INT64, ["batch", "tokens"]) for name in ("input_ids", "attention_mask")]
    output = h.make_tensor_value_info("last_hidden_state", T.FLOAT, ["batch", "tokens", WIDTH])
    graph = h.make_graph(nodes, "ten words", inputs, [output],
                         [numpy_helper.from_array(w.astype(np.float32), name) for name, w in weights.items()])
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), folder / "model.onnx")


def make_tokenizer(folder):
    vocabulary = {word: number for number, word in enumerate(WORDS)}
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": None, "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"}}))


place = pathlib.Path(sys.argv[2])
if sys.argv[3:] == ["make"]:
    make_model(place)
    make_tokenizer(place)
    sys.exit()

import embroider  # noqa: E402

model = embroider.JinaV5.open_files(str(place / "model.onnx"), str(place / "tokenizer.json"), truncate_dim=512, device="cpu")
vectors = [model.encode(text) for text in ("the cat sat on a mat", "a dog ran", "the unknown thing")]
vectors += list(model.encode_batch(["the dog sat", "a cat"]))
assert all(len(vector) == 512 for vector in vectors)
for vector in vectors:
    print(*(f"{float(x):.9g}" for x in vector))
