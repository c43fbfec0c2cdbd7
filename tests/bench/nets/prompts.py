#!/usr/bin/env python3
"""Decoders of MODELS_DIR as the bench's models of prompts: 128 tokens at once, nothing before them.

usage: prompts.py OUTPUT_DIR MODELS_DIR [PATTERN...]

Writes OUTPUT_DIR/NAME/model.onnx, a link, and inputs.npz, once, of the names that a pattern takes. NAME_level4 has
accuracy_level 4, whose products may round activations to codes of 8 bits.
"""
import fnmatch
import pathlib
import sys

import numpy as np
import onnx

SOURCES = {"llama_byte_2m_prompt": "llama_byte_2m_trained",
           "llama_byte_2m_prompt_int4": "llama_byte_2m_trained_int4_matmulnbits",
           "llama_byte_2m_prompt_int4_level4": "llama_byte_2m_trained_int4_matmulnbits"}
LENGTH, WORDS = 128, 256


def inputs_of(graph):
    draw = np.random.default_rng(128)
    arrays = {"input_ids": draw.integers(0, WORDS, (1, LENGTH)),
              "position_ids": np.arange(LENGTH)[None]}
    for value in graph.input:
        if value.name.startswith("past_"):
            sizes = value.type.tensor_type.shape.dim
            arrays[value.name] = np.zeros((1, sizes[1].dim_value, 0, sizes[3].dim_value),
                                          np.float32)
    return arrays


def write_level(source, level, path):
    model = onnx.load(str(source))
    for node in model.graph.node:
        if node.op_type == "MatMulNBits":
            kept = [a for a in node.attribute if a.name != "accuracy_level"]
            del node.attribute[:]
            node.attribute.extend([*kept, onnx.helper.make_attribute("accuracy_level", level)])
    onnx.save(model, str(path))


def main():
    folder, models = map(pathlib.Path, sys.argv[1:3])
    for name, source in SOURCES.items():
        model, place = models.resolve() / source / "model.onnx", folder / name
        wanted = not sys.argv[3:] or any(fnmatch.fnmatch(name, p) for p in sys.argv[3:])
        if not wanted or not model.exists() or (place / "inputs.npz").exists():
            continue
        place.mkdir(parents=True, exist_ok=True)
        (place / "model.onnx").unlink(missing_ok=True)
        if name.endswith("_level4"):
            write_level(model, 4, place / "model.onnx")
        else:
            (place / "model.onnx").symlink_to(model)
        graph = onnx.load(str(model), load_external_data=False).graph
        np.savez(place / "inputs.npz", **inputs_of(graph))
        print(place / "model.onnx")


if __name__ == "__main__":
    main()
