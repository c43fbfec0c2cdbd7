#!/usr/bin/env python3
"""CTranslate2: encoders of its kinds (BERT and its like, Whisper), with the ONNX file's weights in
its specs. What a spec can't say (the mean of words, a product behind the layers) is what a caller
does with numpy, and is timed with it.

usage: ctranslate2.py FOLDER OUT    writes its own form of a model to the folder OUT

Beside what the engine reads, that has what is computed behind it (AFTER). Exit status 1: the reason
is on stdout.

Dynamically quantized models have no form here: the engine quantizes weights by rows, from numbers,
and activations by rows where ONNX's DynamicQuantizeLinear takes the whole tensor. Of
minilm_l6_v2_int8_dyn even the exact product of its weights has a correlation of 0.9985 with what
the model itself gives (the engine 0.9972), so that outputs can't show whether two programs compute
the same.
"""
import pathlib
import sys

if __name__ == "__main__":      # the folder of this file hides the engine
    sys.path[0] = str(pathlib.Path(__file__).resolve().parent.parent)

import ctranslate2 as engine
import numpy as np
from ctranslate2.converters import utils
from ctranslate2.specs import common_spec, transformer_spec, whisper_spec

from peers import forms

BERT_HEADS = {"bert_base": 12, "minilm_l6_v2": 12, "small_transformer": 4}
WHISPER_HEADS = {"whisper_tiny_encoder": 6}
AFTER = "after.npz"  # the names of the outputs, the last product of the network
PER_LAYER = 6       # products: query, key, value, output, and two of the feed-forward network


def set_linear(spec, layer):
    spec.weight, spec.bias = np.ascontiguousarray(layer[0].T), layer[1]


def set_norm(spec, norm):
    spec.gamma, spec.beta = norm[0], norm[1]


def set_layer(spec, linear, norms):
    parts = [common_spec.LinearSpec() for _ in range(3)]
    for part, layer in zip(parts, linear):
        set_linear(part, layer)
    utils.fuse_linear(spec.self_attention.linear[0], parts)
    set_linear(spec.self_attention.linear[1], linear[3])
    set_linear(spec.ffn.linear_0, linear[4])
    set_linear(spec.ffn.linear_1, linear[5])
    set_norm(spec.self_attention.layer_norm, norms[0])
    set_norm(spec.ffn.layer_norm, norms[1])


def set_layers(specs, linear, norms):
    for k, spec in enumerate(specs):
        set_layer(spec, linear[PER_LAYER * k:], norms[2 * k:])


def vocabulary(count):
    return ["token%d" % k for k in range(count)]


def activation_of(net):
    smooth = any(node.op_type == "Erf" for node in net.nodes)
    return common_spec.Activation.GELU if smooth else common_spec.Activation.RELU


def bert_spec(net, heads):
    linear, norms = net.linear_layers(), net.norms()
    *tables, positions = net.tables()
    if not tables:      # no table of positions: all of them are added, in order
        tables, positions = [positions], net.added_matrix()
    encoder = transformer_spec.TransformerEncoderSpec(
        len(linear) // PER_LAYER, heads, pre_norm=False, activation=activation_of(net),
        layernorm_embedding=True, num_source_embeddings=len(tables),
        embeddings_merge=common_spec.EmbeddingsMerge.ADD)
    pooled = "pooler_output" in net.output_names()
    spec = transformer_spec.TransformerEncoderModelSpec(encoder, pooling_layer=pooled)
    encoder.scale_embeddings = False
    for embedding, table in zip(encoder.embeddings, tables):
        embedding.weight = table
    encoder.position_encodings.encodings = positions
    set_norm(encoder.layernorm_embedding, norms[0])
    set_layers(encoder.layer, linear, norms[1:])
    if pooled:
        set_linear(spec.pooler_dense, linear[-1])
    spec.register_vocabulary(vocabulary(len(tables[0])))
    spec.config.unk_token = "token0"
    spec.config.layer_norm_epsilon = norms[0][2]
    return spec


def set_decoder(decoder, width):
    """The engine loads no Whisper without a decoder; this one is never run."""
    def zeros(*shape):
        return np.zeros(shape, np.float32)
    def blank(spec, outs, ins=width):
        spec.weight, spec.bias = zeros(outs, ins), zeros(outs)
    norm = (zeros(width), zeros(width))
    decoder.embeddings.weight = zeros(8, width)
    decoder.position_encodings.encodings = zeros(8, width)
    set_norm(decoder.layer_norm, norm)
    decoder.projection.weight = zeros(8, width)
    for layer in decoder.layer:
        blank(layer.self_attention.linear[0], 3 * width)
        blank(layer.self_attention.linear[1], width)
        blank(layer.attention.linear[0], width)
        blank(layer.attention.linear[1], 2 * width)
        blank(layer.attention.linear[2], width)
        blank(layer.ffn.linear_0, 4 * width)
        blank(layer.ffn.linear_1, width, 4 * width)
        for part in (layer.self_attention, layer.attention, layer.ffn):
            set_norm(part.layer_norm, norm)


def whisper_spec_of(net, heads):
    linear, norms, convs = net.linear_layers(), net.norms(), net.convolutions()
    spec = whisper_spec.WhisperSpec(len(linear) // PER_LAYER, heads, 1, heads)
    for conv, (weight, bias) in zip((spec.encoder.conv1, spec.encoder.conv2), convs):
        conv.weight, conv.bias = weight, bias
    spec.encoder.position_encodings.encodings = net.tables()[0]
    set_layers(spec.encoder.layer, linear, norms)
    set_norm(spec.encoder.layer_norm, norms[-1])
    set_decoder(spec.decoder, len(norms[-1][0]))
    spec.register_vocabulary(vocabulary(8))
    return spec


def write(folder, out):
    make_spec, heads = kind_of(folder)[:2]
    net = forms.Net(folder)
    spec = make_spec(net, heads)
    spec.validate()
    spec.optimize(quantization=None)
    out.mkdir()
    spec.save(str(out))
    weight, bias = net.linear_layers()[-1]
    np.savez(out / AFTER, names=net.output_names(), weight=weight, bias=bias)


def mean_of_words(rows, mask):
    kept = rows * mask[..., None]
    mean = kept.sum(axis=1) / np.maximum(mask.sum(axis=1, keepdims=True), 1e-9)
    return mean / np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), 1e-12)


class Bert:
    def __init__(self, form, threads):
        self.engine = engine.Encoder(str(form), "cpu", compute_type="float32", inter_threads=1,
                                     intra_threads=threads)
        with np.load(form / AFTER) as after:
            self.names, self.last = after["names"].tolist(), (after["weight"], after["bias"])

    def bind(self, inputs):
        tokens = np.ascontiguousarray(inputs["input_ids"], np.int32)
        self.mask = np.asarray(inputs.get("attention_mask", np.ones(tokens.shape)), np.float32)
        lengths = self.mask.sum(axis=1).astype(np.int32)
        self.kept = tokens, lengths
        self.tokens = engine.StorageView.from_array(tokens)
        self.lengths = engine.StorageView.from_array(lengths)
        kinds = inputs.get("token_type_ids")
        self.kinds = None if kinds is None else kinds.tolist()

    def run(self):
        self.result = self.engine.forward_batch(self.tokens, self.lengths, self.kinds)
        self.made = [self.finished(name) for name in self.names]

    def finished(self, name):
        if name == "pooler_output":
            return self.result.pooler_output
        rows = np.asarray(self.result.last_hidden_state)
        if name == "sentence_embedding":
            return mean_of_words(rows, self.mask)
        return rows if name == "last_hidden_state" else rows @ self.last[0] + self.last[1]

    def outputs(self):
        return {k: np.array(array) for k, array in enumerate(self.made)}


class Whisper:
    def __init__(self, form, threads):
        self.engine = engine.models.Whisper(str(form), "cpu", compute_type="float32",
                                            inter_threads=1, intra_threads=threads)

    def bind(self, inputs):
        self.kept = np.ascontiguousarray(inputs["input_features"], np.float32)
        self.features = engine.StorageView.from_array(self.kept)

    def run(self):
        self.result = self.engine.encode(self.features)

    def outputs(self):
        return {0: np.array(self.result)}


def kind_of(folder):
    """What makes a spec, the number of heads, the class of the session."""
    for heads, make_spec, session in ((BERT_HEADS, bert_spec, Bert),
                                      (WHISPER_HEADS, whisper_spec_of, Whisper)):
        if folder.name in heads:
            return make_spec, heads[folder.name], session
    raise forms.Absent("an architecture without a spec")


def open(folder, threads):
    session = kind_of(folder)[2]
    with forms.written(folder, "ctranslate2.py", "ctranslate2") as form:
        return session(form, threads)


def main():
    try:
        write(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
    except forms.Absent as reason:
        print(reason)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
