#!/usr/bin/env python3
"""Write models with very many of one thing, which a check that compares each with each never ends with.

usage: check_crowds.py DIR

Of each model's parts COUNT are there; the rest is a graph y = Relu(x).
"""
import pathlib
import sys

from fixtures import FLOAT, field, node, value_info

COUNT = 100_000
X, Y = value_info("x", [2]), value_info("y", [2])
RELU = node("Relu", ["x"], ["y"])
IMPORTS = (("", 17), ("acme", 1))


def wrapped(nodes=(), initializer=b"", functions=()):
    graph = field(1, RELU) + b"".join(nodes) + field(2, "crowd") + initializer + field(11, X) + field(12, Y)
    return (field(1, 10) + field(7, graph) + b"".join(field(25, f) for f in functions) +
            b"".join(field(8, field(1, d) + field(2, v)) for d, v in IMPORTS))


def function(name="F", inputs=("a",), outputs=("b",), inside=b"", imports=(("", 17),), extra=b""):
    body = field(7, field(1, inputs[0]) + field(2, outputs[0]) + field(4, "Relu") + inside)
    return (field(1, name) + b"".join(field(4, i) for i in inputs) + b"".join(field(5, o) for o in outputs) +
            body + b"".join(field(9, field(1, d) + field(2, v)) for d, v in imports) + field(10, "acme") + extra)


def external(keys):
    entries = b"".join(field(13, field(1, key) + field(2, "0")) for key in keys)
    return field(5, field(1, 0) + field(2, FLOAT) + field(8, "w") + entries + field(14, 1))


def models():
    numbers = range(COUNT)
    names = [f"n{i}" for i in numbers]
    references = b"".join(field(5, field(1, n) + field(20, 1) + field(21, names[-1])) for n in names)
    calls = b"".join(field(1, field(1, "y") + field(2, f"c{i}") + field(4, "F") + field(7, "acme") +
                           field(8, names[-1])) for i in numbers)
    return {
        "keys": wrapped(initializer=external([f"prepacked{n}" for n in names])),
        "slots": wrapped(functions=[function(inputs=names, outputs=[f"o{n}" for n in names])]),
        "references": wrapped(functions=[function(
            inside=references, extra=b"".join(field(6, n) for n in names))]),
        "imports": wrapped(functions=[function(imports=[(n, 1) for n in names])]),
        "functions": wrapped(functions=[function(name=n) for n in names]),
        "overloads": wrapped([calls], functions=[function(extra=field(13, n)) for n in names]),
        "unknown": wrapped([field(1, field(2, f"z{n}") + field(4, f"Relu{i}")) for i, n in enumerate(names)]),
    }


folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
for name, data in models().items():
    (folder / f"{name}.onnx").write_bytes(data)
