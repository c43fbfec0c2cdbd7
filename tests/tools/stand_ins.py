#!/usr/bin/env python3
"""Write what the examples of the manual pages name: small models, a recording, arrays.

usage: stand_ins.py DIR

A network of the same inputs and outputs stands for each that a reader would have.
"""
import pathlib
import struct
import sys
import wave

import fixtures as f

folder = pathlib.Path(sys.argv[1])


def write(name, nodes, inputs, outputs, weights=()):
    """A model of opset 18."""
    (folder / name).write_bytes(f.model(nodes, inputs, outputs, weights, opset=18))


def classifier():
    """Scores of five classes for pictures of any size."""
    write("net.onnx",
          [f.node("GlobalAveragePool", ["x"], ["pooled"]), f.node("Flatten", ["pooled"], ["features"]),
           f.node("MatMul", ["features", "w"], ["scores"])],
          [f.value_info("x", ["batch", 3, "h", "w"])], [f.value_info("scores", ["batch", 5])],
          [f.initializer("w", [3, 5], [i / 15 for i in range(15)])])


def detector():
    """Every box the same."""
    write("yolox.onnx",
          [f.node("ReduceMean", ["x"], ["mean"]), f.node("Reshape", ["mean", "one"], ["small"]),
           f.node("Expand", ["small", "size"], ["output"])],
          [f.value_info("x", [1, 3, 416, 416])], [f.value_info("output", [1, 3549, 85])],
          [f.integers("one", [1, 1, 1]), f.integers("size", [1, 3549, 85])])


def text():
    """A probability for each pixel."""
    write("text.onnx",
          [f.node("ReduceMean", ["x", "axes"], ["mean"]), f.node("Sigmoid", ["mean"], ["p"])],
          [f.value_info("x", [1, 3, "h", "w"])], [f.value_info("p", [1, 1, "h", "w"])],
          [f.integers("axes", [1])])


def prices():
    """A price for each house of a table."""
    write("prices.onnx", [f.node("Add", ["area", "rooms"], ["price"])],
          [f.value_info("area", ["n", 1]), f.value_info("rooms", ["n", 1])],
          [f.value_info("price", ["n", 1])])
    (folder / "houses.csv").write_text("address,area,rooms,photo\n\"Rue du Pont, 3\",70.5,3,a.png\n"
                                       "Am Markt 1,120,5,b.png\n")


def speech():
    """A probability for each window, with a state that is handed on; and a second of sound."""
    write("vad.onnx",
          [f.node("ReduceMean", ["input", "axes"], ["mean"]), f.node("Sigmoid", ["mean"], ["output"]),
           f.node("Identity", ["state"], ["stateN"])],
          [f.value_info("input", ["b", "n"]), f.value_info("state", [2, "b", 128]),
           f.value_info("sr", [], f.INT64)],
          [f.value_info("output", ["b", 1]), f.value_info("stateN", [2, "b", 128])],
          [f.integers("axes", [1])])
    with wave.open(str(folder / "speech.wav"), "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(16000)
        sound.writeframes(b"".join(struct.pack("<h", i % 200 * 100 - 10000) for i in range(16000)))
    (folder / "rate.npy").write_bytes(f.npy([16000], [], "<i8"))


def language():
    """Logits of eight words, and a cache that grows by a row for each token."""
    write("llm.onnx",
          [f.node("Cast", ["input_ids"], ["ids"], attributes={"to": f.FLOAT}),
           f.node("Cast", ["position_ids"], ["at"], attributes={"to": f.FLOAT}),
           f.node("Add", ["ids", "at"], ["sum"]), f.node("Unsqueeze", ["sum", "last"], ["wide"]),
           f.node("Mul", ["wide", "w"], ["logits"]), f.node("Unsqueeze", ["ids", "both"], ["row"]),
           f.node("Concat", ["past_0", "row"], ["present_0"], attributes={"axis": 2})],
          [f.value_info("input_ids", ["b", "s"], f.INT64), f.value_info("past_0", ["b", 1, "p", 1]),
           f.value_info("position_ids", ["b", "s"], f.INT64)],
          [f.value_info("logits", ["b", "s", 8]), f.value_info("present_0", ["b", 1, "t", 1])],
          [f.integers("last", [2]), f.integers("both", [1, 3]),
           f.initializer("w", [8], [i / 8 for i in range(8)])])
    (folder / "prompt.npy").write_bytes(f.npy([1, 2, 3], [1, 3], "<i8"))


classifier()
detector()
text()
prices()
speech()
language()
for name in ("x", "a", "b"):
    (folder / f"{name}.npy").write_bytes(f.npy([i % 7 for i in range(192)], [1, 3, 8, 8]))
(folder / "test_labels.npy").write_bytes(f.npy([4], [1], "<i8"))
(folder / "names.txt").write_text("".join(f"class {i}\n" for i in range(5)))
(folder / "coco.txt").write_text("".join(f"class {i}\n" for i in range(80)))
