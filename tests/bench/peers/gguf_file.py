#!/usr/bin/env python3
"""A decoder of LLaMA's or GPT-2's kind as a GGUF file, with the ONNX file's weights, for llama.cpp.

usage: gguf_file.py FOLDER OUT

FOLDER is as worker.py's. Products come in an order that all exports have: for each layer those of
PARTS or GPT2_PARTS, and the logits. Weights of 4 bits in blocks of 32 become Q4_0 with the
same codes (Q4_1 where they have zero points), whose scales are rounded to float16; all others stay
float32. Exit status 1: the reason is on stdout.
"""
import collections
import pathlib
import sys

import gguf
import numpy as np
from onnx import helper

if __name__ == "__main__":
    sys.path[0] = str(pathlib.Path(__file__).resolve().parent.parent)

from peers import forms

PARTS = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
GPT2_PARTS = ("attn_qkv", "attn_output", "ffn_up", "ffn_down")
BLOCK = 32
TYPES = gguf.GGMLQuantizationType

Rows = collections.namedtuple("Rows", "data kind")     # [outputs, bytes or numbers of a row]


def attributes(node):
    return {a.name: helper.get_attribute_value(a) for a in node.attribute}


def in_blocks(codes, scales, zeros):
    """Rows of codes 0 to 15 [outputs, blocks, 32] with scales and zero points [outputs, blocks]."""
    packed = codes[..., :BLOCK // 2] | codes[..., BLOCK // 2:] << 4
    head = [scales] if zeros is None else [scales, -scales * zeros]
    head = np.stack([h.astype(np.float16) for h in head], axis=-1).view(np.uint8)
    rows = np.concatenate([head, packed], axis=-1)
    return Rows(rows.reshape(len(rows), -1), TYPES.Q4_0 if zeros is None else TYPES.Q4_1)


def halves(packed):
    """The two codes of each byte, the lower first."""
    return np.stack([packed & 15, packed >> 4], axis=-1).reshape(*packed.shape[:-1], -1)


def of_nbits(net, node):
    a = attributes(node)
    if a["bits"] != 4 or a["block_size"] != BLOCK or a["K"] % BLOCK:
        raise forms.Absent("blocks that GGUF doesn't have")
    packed, scales = (net.constants[name] for name in node.input[1:3])
    shape = (a["N"], a["K"] // BLOCK)
    zeros = net.constants[node.input[3]] if len(node.input) > 3 and node.input[3] else None
    if zeros is not None:
        zeros = halves(zeros.reshape(shape[0], -1))[:, :shape[1]]
    return in_blocks(halves(packed.reshape(*shape, BLOCK // 2)), scales.reshape(shape), zeros)


def of_dequantized(net, node):
    """DequantizeLinear of int4 [inputs, outputs] in blocks along the inputs."""
    codes, scales = (net.constants[name] for name in node.input[:2])
    a = attributes(node)
    if str(codes.dtype) != "int4" or a.get("axis", 1) or a.get("block_size") != BLOCK:
        raise forms.Absent("blocks that GGUF doesn't have")
    codes = codes.astype(np.int8).T.reshape(codes.shape[1], -1, BLOCK) + 8
    zeros = net.constants.get(node.input[2]) if len(node.input) > 2 else None
    if zeros is not None and zeros.astype(np.int8).any():
        return in_blocks(codes.astype(np.uint8), scales.T, zeros.astype(np.int8).T + 8)
    return in_blocks(codes.astype(np.uint8), scales.T, None)


def products(net):
    """The weights of all products by a constant, in order."""
    makers = {n.output[0]: n for n in net.nodes if n.op_type == "DequantizeLinear"}
    found = []
    for node in net.nodes:
        if node.op_type == "MatMulNBits":
            found.append(of_nbits(net, node))
        elif node.op_type == "MatMul" and node.input[1] in makers:
            found.append(of_dequantized(net, makers[node.input[1]]))
        elif node.op_type == "MatMul" and net.constant(node, 2) is not None:
            found.append(Rows(np.ascontiguousarray(net.constant(node, 2).T), TYPES.F32))
    return found


def scale_vectors(net, width):
    """The scales of all norms, in order: vectors that something is multiplied by."""
    vectors = [net.constant(n, 1) for n in net.nodes if n.op_type == "Mul"]
    return [v for v in vectors if v is not None and len(v) == width]


def epsilon(net):
    made = {n.output[0] for n in net.nodes if n.op_type == "ReduceMean"}
    return next(float(net.constant(n, 0)) for n in net.nodes
                if n.op_type == "Add" and made & set(n.input) and net.constant(n, 0) is not None)


def rotation_base(net, size):
    """Of the frequencies base^(-2k/size), k below size/2: the constant that has them."""
    for array in net.constants.values():
        f = array.ravel()
        if array.dtype == np.float32 and len(f) == size // 2 and f[0] == 1 and 0 < f[1] < 1:
            base = float(f[1]) ** (-size / 2)
            if np.allclose(f, base ** (-2 * np.arange(size // 2) / size), rtol=1e-3):
                return base
    raise forms.Absent("no rotary embedding")


def paired(rows, heads):
    """Halves of a head are rotated together in ONNX, neighbours in llama.cpp: rows in that order."""
    data = rows.data.reshape(heads, 2, -1, rows.data.shape[1]).swapaxes(1, 2)
    return Rows(np.ascontiguousarray(data.reshape(rows.data.shape)), rows.kind)


def add_settings(file, net, weights, table, size):
    layers, heads = len(weights) // len(PARTS), len(weights[0].data) // size
    file.add_context_length(4096)
    file.add_embedding_length(table.shape[1])
    file.add_block_count(layers)
    file.add_feed_forward_length(len(weights[4].data))
    file.add_head_count(heads)
    file.add_head_count_kv(len(weights[1].data) // size)
    file.add_key_length(size)
    file.add_value_length(size)
    file.add_rope_dimension_count(size)
    file.add_rope_freq_base(rotation_base(net, size))
    file.add_layer_norm_rms_eps(epsilon(net))
    file.add_vocab_size(len(table))
    file.add_tokenizer_model("no_vocab")


def add_rows(file, name, rows):
    file.add_tensor(name + ".weight", rows.data,
                    raw_dtype=None if rows.kind == TYPES.F32 else rows.kind)


def head_size(net):
    past = [i for i in net.graph.input if i.name == "past_k_0"]
    if not past:
        raise forms.Absent("no decoder with a past")
    return past[0].type.tensor_type.shape.dim[3].dim_value


def write_llama(net, file):
    size, weights, tables = head_size(net), products(net), net.tables()
    norms = scale_vectors(net, tables[0].shape[1])
    layers = len(weights) // len(PARTS)
    if len(weights) != layers * len(PARTS) + 1 or len(norms) != 2 * layers + 1:
        raise forms.Absent("layers of another kind than LLaMA's")
    add_settings(file, net, weights, tables[0], size)
    add_rows(file, "token_embd", Rows(tables[0], TYPES.F32))
    for k in range(layers):
        for part, rows in zip(PARTS, weights[k * len(PARTS):]):
            turned = part in ("attn_q", "attn_k")
            add_rows(file, "blk.%d.%s" % (k, part),
                     paired(rows, len(rows.data) // size) if turned else rows)
        file.add_tensor("blk.%d.attn_norm.weight" % k, norms[2 * k])
        file.add_tensor("blk.%d.ffn_norm.weight" % k, norms[2 * k + 1])
    file.add_tensor("output_norm.weight", norms[-1])
    add_rows(file, "output", weights[-1])


def add_biased(file, name, weight, bias):
    file.add_tensor(name + ".weight", np.ascontiguousarray(weight))
    file.add_tensor(name + ".bias", bias)


def write_gpt2(net, file):
    linear, norms, (words, positions) = net.linear_layers(), net.norms(), net.tables()
    layers = len(linear) // len(GPT2_PARTS)
    if len(linear) != layers * len(GPT2_PARTS) + 1 or len(norms) != 2 * layers + 1:
        raise forms.Absent("layers of another kind than GPT-2's")
    file.add_context_length(len(positions))
    file.add_embedding_length(words.shape[1])
    file.add_block_count(layers)
    file.add_feed_forward_length(linear[2][0].shape[1])
    file.add_head_count(words.shape[1] // head_size(net))
    file.add_layer_norm_eps(norms[0][2])
    file.add_vocab_size(len(words))
    file.add_tokenizer_model("no_vocab")
    file.add_tensor("token_embd.weight", words)
    file.add_tensor("position_embd.weight", positions)
    for k in range(layers):
        add_biased(file, "blk.%d.attn_norm" % k, *norms[2 * k][:2])
        add_biased(file, "blk.%d.ffn_norm" % k, *norms[2 * k + 1][:2])
        for part, (weight, bias) in zip(GPT2_PARTS, linear[k * len(GPT2_PARTS):]):
            add_biased(file, "blk.%d.%s" % (k, part), weight.T, bias)
    add_biased(file, "output_norm", *norms[-1][:2])
    file.add_tensor("output.weight", np.ascontiguousarray(linear[-1][0].T))


def write(folder, out):
    net = forms.Net(folder)
    head_size(net)
    old = len(net.tables()) == 2        # positions have a table of their own
    file = gguf.GGUFWriter(out, "gpt2" if old else "llama")
    (write_gpt2 if old else write_llama)(net, file)
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()


def main():
    try:
        write(pathlib.Path(sys.argv[1]), sys.argv[2])
    except forms.Absent as reason:
        print(reason)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
