#!/usr/bin/env python3
"""Write models and tensors that mean harm: what once crashed, hung or was taken for something else.

usage: hostile_models.py DIR

Every file is made from a few bytes that are written here. tests/cli/hostile.bats and make check (each
kernel tier, with sanitizers) run the tools on them.
"""
import pathlib
import struct
import sys

from fixtures import (FLOAT, INT64, TRAINING, external, field, initializer, integers, model, node,
                      npy, value_info, varint)

BOOL, UINT8, INT32 = 9, 2, 6
MICROSOFT = "com.microsoft"


def ints(name, values):
    """An attribute that is a list of integers."""
    payload = b"".join(varint(8 << 3) + varint(v & (1 << 64) - 1) for v in values)
    return field(5, field(1, name) + payload + field(20, 7))


def number(name, value):
    """An integer attribute of any sign."""
    return field(5, field(1, name) + varint(3 << 3) + varint(value & (1 << 64) - 1) + field(20, 2))


def text(name, value):
    return field(5, field(1, name) + field(4, value) + field(20, 3))


def body(name, nodes, inputs, outputs, initializers=()):
    """An attribute that is a graph."""
    graph = b"".join(field(1, n) for n in nodes) + field(2, "body")
    graph += b"".join(field(5, i) for i in initializers)
    graph += b"".join(field(11, i) for i in inputs) + b"".join(field(12, o) for o in outputs)
    return field(5, field(1, name) + field(6, graph) + field(20, 5))


def tensor(name, dims, dtype, raw):
    out = b"".join(varint(1 << 3) + varint(d & (1 << 64) - 1) for d in dims) + field(2, dtype)
    return out + field(8, name) + field(9, raw)


def bare_value(name, dtype=FLOAT):
    """A value of unknown rank."""
    return field(1, name) + field(2, field(1, field(1, dtype)))


def file_npy(descr, shape, data=b"", extra=""):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, {extra}}}"
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def transposes():
    """perm of what has no known rank (and of what has one): (name, perm, rank known)."""
    for name, perm, known in (("huge", [0, 100000000], False), ("past", [1, 40], False),
                              ("doubled", [1, 1], False), ("negative", [-1, 0], True),
                              ("long", list(range(20)), False)):
        x = value_info("x", [2, 3]) if known else bare_value("x")
        nodes = [node("Transpose", ["x"], ["t"]) + ints("perm", perm),
                 node("Transpose", ["t"], ["y"]) + ints("perm", perm)]
        yield f"transpose_{name}", model(nodes, [x], [bare_value("y")])


def absent_first():
    """Valid: a Loop without trip count, an Optional without value."""
    step = [node("Less", ["n", "limit"], ["again"]), node("Add", ["n", "one"], ["next"])]
    inside = body("body", step, [value_info("i", [], INT64), value_info("c", [], BOOL),
                                 value_info("n", [], FLOAT)],
                  [value_info("again", [], BOOL), value_info("next", [], FLOAT)])
    consts = [tensor("limit", [], FLOAT, struct.pack("<f", 3)),
              tensor("one", [], FLOAT, struct.pack("<f", 1)),
              tensor("true", [], BOOL, b"\1"), tensor("zero", [], FLOAT, bytes(4))]
    yield "loop_without_count", model([node("Loop", ["", "true", "zero"], ["y"]) + inside], [],
                                      [value_info("y", [], FLOAT)], consts)
    form = field(5, field(1, "type") + field(14, field(1, field(1, FLOAT))) + field(20, 13))
    yield "optional_of_nothing", model(
        [node("Optional", [""], ["o"]) + form, node("OptionalHasElement", ["o"], ["y"])], [],
        [value_info("y", [], BOOL)], opset=18)


def scalars():
    """Inputs that are one number and come without any: known, and (rank unknown) to a run alone."""
    empty = tensor("none", [0], INT64, b"")
    empty_f = tensor("none_f", [0], FLOAT, b"")
    some = tensor("some", [2], FLOAT, struct.pack("<2f", 1, 2))
    five = tensor("five", [], INT64, struct.pack("<q", 5))
    bytes8 = tensor("bytes", [1, 1, 2, 2], UINT8, b"\1\2\3\4")
    scale = tensor("scale", [], FLOAT, struct.pack("<f", 1))
    zero = tensor("zero", [], UINT8, b"\0")
    no_zero = tensor("no_zero", [0], UINT8, b"")
    cases = {
        "clip": [node("Clip", ["some", "e_f"], ["y"])],
        "range": [node("Range", ["e", "five", "five"], ["y"])],
        "onehot": [node("OneHot", ["five", "e", "some"], ["y"])],
        "cumsum": [node("CumSum", ["some", "e"], ["y"])],
        "dropout": [node("Dropout", ["some", "e_f"], ["y"])],
        "mel": [node("MelWeightMatrix", ["five", "five", "five", "e_f", "scale"], ["y"])],
        "window": [node("HannWindow", ["e"], ["y"])],
        "if": [node("Cast", ["e"], ["c"]) + number("to", BOOL),
               node("If", ["c"], ["y"]) +
               body("then_branch", [node("Identity", ["some"], ["a"])], [],
                    [value_info("a", [2])]) +
               body("else_branch", [node("Identity", ["some"], ["b"])], [], [value_info("b", [2])])],
        "qconv": [node("QLinearConv", ["bytes", "scale", "zero", "bytes", "scale", "e_z", "scale",
                                       "zero"], ["y"])],
    }
    made = [empty, empty_f, some, five, bytes8, scale, zero, no_zero]
    names = {"e": ("none", INT64), "e_f": ("none_f", FLOAT), "e_z": ("no_zero", UINT8)}
    for name, nodes in cases.items():
        wires = [node("Identity", [source], [to]) for to, (source, _) in names.items()]
        y = bare_value("y", UINT8 if name == "qconv" else INT64 if name == "range" else FLOAT)
        yield f"none_{name}_known", model(wires + nodes, [], [y], made)
        runs = [bare_value(to, dtype) for to, (_, dtype) in names.items()]
        runs += [bare_value("five", INT64), bare_value("scale")]
        rest = [t for t in made if t not in (five, scale)]
        used = [r for r, n in zip(runs, list(names) + ["five", "scale"])
                if any(field(1, n) in wire for wire in nodes)]
        yield f"none_{name}_run", model(nodes, used, [y], rest)


def extremes():
    """Integers at the end of their range as attributes."""
    low, high = -(1 << 63), (1 << 63) - 1
    yield "tfidf_index", model(
        [node("TfIdfVectorizer", ["x"], ["y"]) + ints("ngram_indexes", [0, high]) +
         ints("ngram_counts", [0]) + ints("pool_int64s", [1, 2]) + text("mode", "TF") +
         number("min_gram_length", 1) + number("max_gram_length", 1) +
         number("max_skip_count", 0)], [value_info("x", [4], INT64)], [bare_value("y")])
    yield "tfidf_skips", model(
        [node("TfIdfVectorizer", ["x"], ["y"]) + ints("ngram_indexes", [0, 1]) +
         ints("ngram_counts", [0]) + ints("pool_int64s", [1, 2]) + text("mode", "TF") +
         number("min_gram_length", 1) + number("max_gram_length", 1) +
         number("max_skip_count", high)], [value_info("x", [4], INT64)], [bare_value("y")])
    for name, more in (("dense", []), ("varlen", ["ends"])):
        op = ("Varlen" if more else "") + "NGramHashMapping"
        yield f"ngram_{name}", model(
            [node(op, ["x", "m", "v"] + more, ["y", "p"], domain=MICROSOFT) +
             number("max_ngram_size", low) + number("n_head_per_ngram", 1) + number("pad_id", 0)],
            [value_info("x", [4] if more else [1, 4], INT64), value_info("m", [2], INT64),
             value_info("v", [1], INT64)] + [value_info(n, [2], INT32) for n in more],
            [bare_value("y", INT64), bare_value("p", INT64)], domains=[MICROSOFT])
    for name, axis in (("beyond", 1 << 31), ("wrapped", 1 << 32)): # of old opsets: where B begins in A
        yield f"axis_{name}", model(
            [node("Add", ["x", "b"], ["y"]) + number("axis", axis) + number("broadcast", 1)],
            [value_info("x", [2, 3])], [bare_value("y")], [initializer("b", [2], [1.0, 2.0])], opset=6)
    yield "reorder_channels", model(
        [node("Conv", ["x", "w"], ["c"], domain="com.microsoft.nchwc"),
         node("ReorderOutput", ["c"], ["y"], domain="com.microsoft.nchwc") + number("channels", low)],
        [value_info("x", [1, 16, 4, 4])], [bare_value("y")],
        [initializer("w", [16, 16, 1, 1], [1.0] * 256)], domains=["com.microsoft.nchwc"])
    yield "dynamic_range", model([node("DynamicQuantizeLinear", ["x"], ["y", "s", "y_z"])],
                                 [value_info("x", [2])],
                                 [bare_value(n, t) for n, t in (("y", UINT8), ("s", FLOAT), ("y_z", UINT8))])
    for name, taps in (("enough", 63), ("wide", (1 << 31) - 1)): # each of their windows meets a whole row
        yield "pool_" + name, model(
            [node("AveragePool", ["x"], ["y"]) + ints("kernel_shape", [2, taps]) +
             text("auto_pad", "SAME_UPPER")], [value_info("x", [1, 3, 32, 32])], [bare_value("y")])
    yield "unfold_step", model(
        [node("UnfoldTensor", ["x"], ["y"], domain=MICROSOFT) + number("dim", 0) + number("size", 2) +
         number("step", high)], [value_info("x", [2, 3])], [bare_value("y")], domains=[MICROSOFT])
    yield "masked_heads", model(
        [node("DecoderMaskedMultiHeadAttention", ["x"], ["y"], domain=MICROSOFT) +
         number("num_heads", low)], [value_info("x", [1, 1, 12])], [bare_value("y")], domains=[MICROSOFT])
    yield "conv_shape", model(
        [node("ConvTranspose", ["x", "w"], ["y"]) + ints("output_shape", [low, low])],
        [value_info("x", [1, 3, 4, 4])], [bare_value("y")], [initializer("w", [3, 3, 1, 1], [1.0] * 9)])
    yield "attention_mode", model(
        [node("Attention", ["q", "q", "q"], ["y"]) + number("qk_matmul_output_mode", 1 << 32)],
        [value_info("q", [1, 1, 2, 4])], [bare_value("y")], opset=23)
    yield "attention_no_keys", model( # and the scores of none
        [node("MultiHeadAttention", ["q", "k", "k"], ["y", "", "", "s"], domain=MICROSOFT) +
         number("num_heads", 2) + number("unidirectional", 1)], [], [bare_value("y"), bare_value("s")],
        [initializer("q", [2, 3, 8], [1.0] * 48), initializer("k", [2, 0, 8], [])],
        domains=[MICROSOFT])
    yield "shape_end", model([node("Relu", ["x"], ["r"]),
                              node("Shape", ["r"], ["y"]) + number("start", 1) + number("end", low)],
                             [value_info("x", ["a", 3])], [bare_value("y", INT64)])
    yield "conv_group", model(
        [node("ConvTranspose", ["x", "w"], ["y"]) + number("group", 1 << 62)],
        [value_info("x", [1, 3, 4, 4])], [bare_value("y")],
        [initializer("w", [3, 3, 1, 1], [1.0] * 9)])
    yield "conv_group_empty", model( # nothing divides into any number of groups
        [node("ConvTranspose", ["x", "w"], ["y"]) + number("group", 1 << 62)],
        [bare_value("x")], [bare_value("y")], [initializer("w", [0, 3, 1, 1], [])])
    for pad in range(1, 5): # the payload lies at another offset each time
        yield f"unaligned_{pad}", model(
            [node("AveragePool", ["w" * pad], ["y"]) + ints("kernel_shape", [2, 2])], [],
            [value_info("y", [1, 1, 2, 2])], [initializer("w" * pad, [1, 1, 3, 3], [1.0] * 9)])


def holes():
    """Lists of inputs in which one is left out."""
    step = node("Momentum", ["r", "t", "x", "", "v"], ["y", "w"], domain=TRAINING)
    step += text("mode", "standard") + b"".join(
        field(5, field(1, n) + varint(2 << 3 | 5) + struct.pack("<f", 0.5) + field(20, 1))
        for n in ("alpha", "beta", "norm_coefficient"))
    yield "momentum_hole", model(
        [step], [value_info("r", []), value_info("t", [], INT64), value_info("x", [3]),
                 value_info("v", [3])], [bare_value("y"), bare_value("w")], domains=[TRAINING])


def sizes():
    """Sizes that no product of sizes may overflow with, and that nothing may be divided by."""
    low, high = -(1 << 63), (1 << 63) - 1
    for name, block, bits in (("rows_of_one_block", high, 8), ("rows_of_no_bits", 16, 0),
                              ("rows_of_many_bits", 16, 1 << 32)):
        yield name, model(
            [node("GatherBlockQuantized", ["w", "i", "s"], ["y"], domain=MICROSOFT) +
             number("block_size", block) + number("bits", bits)], [value_info("i", [2], INT64)],
            [bare_value("y")], [tensor("w", [4, 16], UINT8, bytes(64)),
                                initializer("s", [4, 1], [1.0] * 4)], domains=[MICROSOFT])
    nchwc = "com.microsoft.nchwc"
    yield "blocked_kernel", model(
        [node("ReorderInput", ["x"], ["r"], domain=nchwc),
         node("Conv", ["r", "w"], ["c"], domain=nchwc) + ints("kernel_shape", [3, 1]),
         node("ReorderOutput", ["c"], ["y"], domain=nchwc) + number("channels", 16)],
        [value_info("x", [1, 16, 8, 8])], [bare_value("y")],
        [initializer("w", [16, 16, 1, 1], [1.0] * 256)], domains=[nchwc])
    names = [f"x{i}" for i in range(9)]
    for name, heads, kv_heads in (("heads_below", 2, low), ("heads_beyond", high, high)):
        yield name, model(
            [node("SparseAttention", [names[0], "", ""] + names[3:], ["y", "k", "v"],
                  domain=MICROSOFT) + number("num_heads", heads) +
             number("kv_num_heads", kv_heads) + number("sparse_block_size", 16)],
            [value_info(names[0], [1, 4, 48])] + [bare_value(n) for n in names[3:5]] +
            [bare_value(n, INT32) for n in names[5:]], [bare_value(n) for n in ("y", "k", "v")],
            domains=[MICROSOFT])
    yield "topk_all", model(
        [node("Transpose", ["x"], ["t"]), node("TopK", ["t", "k"], ["y", "i"]) + number("axis", 3)],
        [value_info("x", ["a", "b", "c", "d"])], [bare_value("y")],
        [tensor("k", [1], INT64, struct.pack("<q", 1 << 62))])


def invalid():
    """Initializers that no model can have; external data that is a folder; exit status 3."""
    relu = [node("Relu", ["w"], ["y"])]
    out = [bare_value("y")]
    yield "dims_negative", model(relu, [], out, [tensor("w", [-3], FLOAT, bytes(12))])
    yield "dims_huge", model(relu, [], out, [tensor("w", [1 << 62], FLOAT, bytes(12))])
    yield "data_is_folder", model(relu, [], out, [external("w", [4], "folder")])
    values = tensor("s", [1], FLOAT, struct.pack("<f", 1))
    at = tensor("", [1], INT64, bytes(8))
    sparse = field(1, values) + field(2, at) + b"".join(field(3, 1 << 31) for _ in range(2))
    graph = field(1, node("Relu", ["s"], ["y"])) + field(2, "g") + field(15, sparse)
    graph += field(12, bare_value("y"))
    yield "sparse_huge", (field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 17)))


def misfits():
    """Valid models that these values or shapes don't fit: the run's or the caller's fault, never 3."""
    yield "inner_shape", model([node("MatMul", ["x", "w"], ["y"])], [bare_value("x")],
                               [bare_value("y")], [initializer("w", [3, 2], [1.0] * 6)])
    yield "inner_value", model([node("Reshape", ["x", "to"], ["y"])],
                               [value_info("x", [4]), value_info("to", ["n"], INT64)],
                               [bare_value("y")])


def main():
    folder = pathlib.Path(sys.argv[1])
    (folder / "folder").mkdir(parents=True, exist_ok=True)
    for group in (transposes, absent_first, scalars, extremes, holes, sizes, invalid,
                  misfits):
        for name, content in group():
            (folder / f"{name}.onnx").write_bytes(content)
    tensors = {
        "x.npy": npy([1, 2, 3, 4, 5, 6], (2, 3)), "four.npy": npy([1, 2, 3, 4], (4,)),
        "wide.npy": npy([1] * 10, (2, 5)), "tokens.npy": npy([1, 2, 1, 2], (4,), "<i8"),
        "three.npy": npy([3], (1,), "<i8"), "five.npy": npy([5], (), "<i8"),
        "one.npy": npy([1], ()), "none.npy": npy([], (0,), "<i8"), "none_f.npy": npy([], (0,)),
        "no_channels.npy": npy([], (1, 0, 4, 4)), "none_z.npy": file_npy("|u1", "(0,)"),
        "shape_twice.npy": file_npy("<f4", "(2,)", bytes(8), "'shape': (1,), "),
        "claims.npy": file_npy("<f4", f"({1 << 60},)", bytes(8)),
        "claims_more.npy": file_npy("|u1", f"({(1 << 63) - 1},)", bytes(8)),
        "record.npy": file_npy("<m8", "(2,)", bytes(16)),
        "version.npy": b"\x93NUMPY\x09\x00" + bytes(64),
        "method.wav": (b"RIFF" + struct.pack("<I", 44) + b"WAVEfmt " +
                       struct.pack("<IHHIIHH", 16, 77, 1, 8000, 8000, 1, 8) + b"data" +
                       struct.pack("<I", 8) + bytes(8)),
        "depth.bmp": (b"BM" + struct.pack("<IHHI", 58, 0, 0, 54) +
                      struct.pack("<IiiHHIIiiII", 40, 1, 1, 1, 11, 9, 4, 0, 0, 0, 0) + bytes(4)),
        "kind.safetensors": (lambda h: struct.pack("<Q", len(h)) + h + bytes(8))(
            b'{"a":{"dtype":"Q9","shape":[2],"data_offsets":[0,8]}}'),
    }
    for name, data in tensors.items():
        (folder / name).write_bytes(data)


if __name__ == "__main__":
    main()
