#!/usr/bin/env python3
"""Write the small models, tensors and bad files that the tests of the tools use.

usage: fixtures.py DIR

Needs only Python's own library: the few protobuf fields that occur are written by hand from the
field numbers of onnx.proto, the arrays as .npy and .npz.
"""
import io
import pathlib
import struct
import sys
import zipfile

FLOAT, INT64, STRING, BOOL, BFLOAT16 = 1, 7, 8, 9, 16


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    """One field: int as varint, str and bytes as length-delimited."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, str):
        value = value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value


def attribute(name, value):
    """An int, float, string, or list of strings, ints or floats as an attribute of a node."""
    if isinstance(value, float):
        payload, kind = varint(2 << 3 | 5) + struct.pack("<f", value), 1
    elif isinstance(value, int):
        payload, kind = field(3, value), 2
    elif isinstance(value, str):
        payload, kind = field(4, value), 3
    elif isinstance(value[0], int):
        payload, kind = b"".join(field(8, v) for v in value), 7
    elif isinstance(value[0], float):
        payload, kind = b"".join(varint(7 << 3 | 5) + struct.pack("<f", v) for v in value), 6
    else:
        payload, kind = b"".join(field(9, v) for v in value), 8
    return field(5, field(1, name) + payload + field(20, kind))


def node(op, inputs, outputs, name="", domain="", attributes=None):
    out = b"".join(field(1, i) for i in inputs) + b"".join(field(2, o) for o in outputs)
    out += b"".join(attribute(n, v) for n, v in (attributes or {}).items())
    return out + field(3, name or f"{op.lower()}_{outputs[0]}") + field(4, op) + (
        field(7, domain) if domain else b"")


def value_info(name, dims, dtype=FLOAT):
    shape = b"".join(field(1, field(2, d) if isinstance(d, str) else field(1, d)) for d in dims)
    return field(1, name) + field(2, field(1, field(1, dtype) + field(2, shape)))


def list_of_maps(name):
    """seq(map(string, float)), what ZipMap gives."""
    number = field(1, field(1, FLOAT) + field(2, b""))
    return field(1, name) + field(2, field(4, field(1, field(5, field(1, STRING) + field(2, number)))))


def initializer(name, dims, values):
    out = b"".join(field(1, d) for d in dims) + field(2, FLOAT) + field(8, name)
    return out + field(9, struct.pack(f"<{len(values)}f", *values))


def integers(name, values):
    out = field(1, len(values)) + field(2, INT64) + field(8, name)
    return out + field(9, struct.pack(f"<{len(values)}q", *values))


def external(name, dims, location):
    entry = field(1, "location") + field(2, location)
    return (b"".join(field(1, d) for d in dims) + field(2, FLOAT) + field(8, name) +
            field(13, entry) + field(14, 1))


def model(nodes, inputs, outputs, initializers=(), opset=17, ir=8, domains=()):
    graph = b"".join(field(1, n) for n in nodes) + field(2, "test")
    graph += b"".join(field(5, i) for i in initializers)
    graph += b"".join(field(11, i) for i in inputs) + b"".join(field(12, o) for o in outputs)
    imports = field(8, field(1, "") + field(2, opset))
    imports += b"".join(field(8, field(1, d) + field(2, 1)) for d in domains)
    return field(1, ir) + field(2, "fixtures.py") + field(7, graph) + imports


TRAINING = "ai.onnx.preview.training"


def gradient(xs, zs, y, outputs):
    return node("Gradient", xs + zs, outputs, domain=TRAINING) + attribute("xs", xs) + (
        attribute("zs", zs) if zs else b"") + attribute("y", y)


def training():
    """Logistic regression of x [8, 2] to labels [8], one step of Adam: w, its moments v and h and
    the step count go in and come out."""
    shapes = {"w": [2, 2], "v": [2, 2], "h": [2, 2]}
    nodes = [node("MatMul", ["x", "w"], ["scores"]),
             node("SoftmaxCrossEntropyLoss", ["scores", "labels"], ["loss"]),
             gradient(["w"], ["x", "labels"], "loss", ["slope"]),
             node("Adam", ["rate", "step", "w", "slope", "v", "h"], ["new_w", "new_v", "new_h"],
                  domain=TRAINING),
             node("Add", ["step", "one"], ["new_step"])]
    one = field(2, INT64) + field(8, "one") + field(9, struct.pack("<q", 1))
    rate = field(2, FLOAT) + field(8, "rate") + field(9, struct.pack("<f", 0.1))
    inputs = [value_info("x", [8, 2]), value_info("labels", [8], INT64),
              value_info("step", [], INT64)]
    outputs = [value_info("loss", []), value_info("new_step", [], INT64)]
    for name, dims in shapes.items():
        inputs.append(value_info(name, dims))
        outputs.append(value_info(f"new_{name}", dims))
    return model(nodes, inputs, outputs, [one, rate], domains=[TRAINING])


def gradient_in_function():
    """The gradient of p * p inside of a function; its p and s are other values than the graph's."""
    body = [node("Mul", ["p", "p"], ["s"]), gradient(["p"], [], "s", ["q"])]
    imports = [("", 17), (TRAINING, 1)]
    function = (field(1, "Slope") + field(4, "p") + field(5, "q") +
                b"".join(field(7, n) for n in body) + field(10, "acme") +
                b"".join(field(9, field(1, d) + field(2, v)) for d, v in imports))
    nodes = [node("Neg", ["x"], ["s"]), node("Exp", ["s"], ["p"]),
             node("Slope", ["x"], ["out"], domain="acme")]
    return model(nodes, [value_info("x", [2, 3])], [value_info("out", [2, 3])],
                 domains=[TRAINING, "acme"]) + field(25, function)


def npy(values, shape, kind="<f4"):
    flat = {"<f4": "f", "<i8": "q"}[kind]
    text = "(" + "".join(f"{d}, " for d in shape) + ")"
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {text}, }}"
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    return (b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() +
            struct.pack(f"<{len(values)}{flat}", *values))


def archive(members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as z:
        for name, data in members.items():
            z.writestr(name, data)
    return buffer.getvalue()


def nested(levels):
    """A model whose graph nests: node, attribute, graph, node, attribute, graph, ..."""
    graph = field(2, "innermost")
    for _ in range(levels // 3):
        body = field(1, "body") + field(20, 5) + field(6, graph)
        graph = field(1, field(1, "c") + field(2, "y") + field(4, "If") + field(5, body))
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 17))


def body(name, graph):
    return field(5, field(1, name) + field(6, graph) + field(20, 5))


def untyped():
    """Branches whose results have no type; one is a node of constants."""
    known = field(1, node("Neg", ["w"], ["known"])) + field(2, "known") + field(
        5, initializer("w", [2, 3], [1, 2, 3, 4, 5, 6])) + field(12, field(1, "known"))
    other = field(1, node("Abs", ["x"], ["other"])) + field(2, "other") + field(12, field(1, "other"))
    choice = node("If", ["flag"], ["out"]) + body("then_branch", known) + body("else_branch", other)
    return model([choice], [value_info("x", [2, 3]), value_info("flag", [], 9)],
                 [value_info("out", [2, 3])])


def captured():
    """Branches that read b, which computes what a does: once merged, they must read a."""
    def branch(op):
        graph = field(1, node(op, ["b"], [f"{op}_b"])) + field(2, op)
        return graph + field(12, value_info(f"{op}_b", [2, 3]))

    choice = node("If", ["flag"], ["out"]) + body("then_branch", branch("Exp")) + body(
        "else_branch", branch("Abs"))
    nodes = [node("Neg", ["x"], ["a"]), node("Neg", ["x"], ["b"]), node("Relu", ["a"], ["other"]),
             choice]
    return model(nodes, [value_info("x", [2, 3]), value_info("flag", [], 9)],
                 [value_info("out", [2, 3]), value_info("other", [2, 3])])


def models():
    x, y, out = (value_info(n, [2, 3]) for n in ("x", "y", "out"))
    add = model([node("Add", ["x", "y"], ["out"])], [x, y], [out])
    chain = [node("Relu", ["x"], ["a"]), node("Neg", ["a"], ["b"]), node("Exp", ["b"], ["out"])]
    renamed = [node("Relu", ["x"], ["t1"], "first"), node("Neg", ["t1"], ["t2"], "second"),
               node("Exp", ["t2"], ["out"], "third")]
    weight = initializer("w", [2, 3], [1, 2, 3, 4, 5, 6])
    return {
        "add.onnx": add,
        "chain.onnx": model(chain, [x], [out]),
        "looked_up.onnx": model(
            [node("Gather", ["w", "rows"], ["g"]), node("Sigmoid", ["g"], ["s"]), node("Mul", ["g", "s"], ["m"]),
             node("Add", ["m", "bias"], ["a"]), node("Tanh", ["a"], ["out"])],
            [value_info("rows", ["N"], INT64)], [value_info("out", ["N", 3]), value_info("m", ["N", 3])],
            [weight, initializer("bias", [3], [0.1, 0.2, 0.3])]),
        "renamed.onnx": model(renamed, [x], [out]),
        "pair.onnx": model(chain + [node("Sin", ["x"], ["extra"])], [x],
                           [out, value_info("extra", [2, 3])]),
        "scaled.onnx": model([node("Mul", ["x", "w"], ["a"], "scale"), node("Relu", ["a"], ["out"])],
                             [x], [out], [weight]),
        "split_up.onnx": model(
            [node("Neg", ["x"], ["a"]), node("Relu", ["a"], ["out"]), node("Hardmax", ["a"], ["most"])],
            [x], [out, value_info("most", [2, 3])]),
        "flat.onnx": model([node("Reshape", ["x", "shape"], ["out"])], [x], [value_info("out", [6])],
                           [integers("shape", [6])]),
        "rescaled.onnx": model([node("Mul", ["x", "v"], ["q"]), node("Relu", ["q"], ["out"])], [x],
                               [out], [initializer("v", [2, 3], [1, 2, 3, 4, 5, 7])]),
        # Nine values of one size, two of which live at a time; then sums, so that an empty batch has a result.
        "pools.onnx": model(
            [node("MaxPool", [f"v{i}" if i else "x"], [f"v{i + 1}"],
                  attributes={"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}) for i in range(9)] +
            [node("ReduceSum", ["v9", "axes"], ["out"], attributes={"keepdims": 0})],
            [value_info("x", ["N", 4, 32, 32])], [value_info("out", ["N", 4])], [integers("axes", [2, 3])]),
        "sideways.onnx": model(
            [node("Transpose", ["x"], ["a"]), node("Conv", ["a", "w"], ["out"])],
            [value_info("x", [2, 2, 3, 1])], [value_info("out", [1, 2, 2, 2])],
            [initializer("w", [2, 3, 1, 1], [1, 2, 3, 4, 5, 6])]),
        "other.onnx": model(chain[:2] + [node("Abs", ["b"], ["out"])], [x], [out]),
        "shifted.onnx": model(
            [chain[0], node("Sigmoid", ["a"], ["b"]), node("Sub", ["b", "b"], ["out"])], [x],
            [out]),
        "weight.onnx": model([node("Add", ["x", "w"], ["out"])], [x], [out], [weight]),
        "unread.onnx": model([node("Add", ["x", "w"], ["out"])], [x], [out],
                             [weight, initializer("lonely", [2], [1, 2])]),
        "window.onnx": model(
            [node("Conv", ["x", "taps"], ["y"])], [value_info("x", ["batch", 1, "samples"])],
            [value_info("y", ["batch", 1, "frames"])],
            [initializer("taps", [1, 1, 256], [i / 256 for i in range(256)])]),
        "reshape.onnx": model(
            [node("Reshape", ["x", "one_row"], ["a"]), node("Relu", ["a"], ["b"]),
             node("Reshape", ["b", "two"], ["out"])], [value_info("x", [2, 3])], [out],
            [integers("one_row", [2, 3, 1]), integers("two", [2, 3])]),
        "large.onnx": model(
            [node("Mul", ["x", "steep"], ["big"]), node("Tanh", ["big"], ["a"]),
             node("Div", ["a", "huge"], ["out"])], [x], [out],
            [initializer("steep", [1], [60000]), initializer("huge", [1], [100000])]),
        "lowest.onnx": model(
            [node("Relu", ["x"], ["a"]), node("Sub", ["a", "a"], ["nothing"]),
             node("Mul", ["nothing", "lowest"], ["mask"]), node("Add", ["x", "mask"], ["out"])],
            [x], [out], [initializer("lowest", [1], [-3.4028234663852886e38])]),
        "nan.onnx": model([node("Sub", ["x", "x"], ["a"]), node("Div", ["a", "a"], ["out"])], [x],
                          [out]),
        "half_nan.onnx": model(
            [node("Sub", ["x", "x"], ["a"]), node("Div", ["a", "a"], ["out"]),
             node("Neg", ["x"], ["fine"])], [x], [out, value_info("fine", [2, 3])]),
        "tile.onnx": model([node("Tile", ["w", "times"], ["a"]), node("Add", ["x", "a"], ["out"])],
                           [value_info("x", [2, 3])], [out],
                           [initializer("w", [1, 3], [1, 2, 3]), integers("times", [2, 1])]),
        "spread.onnx": model([node("Tile", ["w", "times"], ["t"]), node("Add", ["x", "t"], ["a"]),
                              node("Expand", ["w", "dims"], ["e"]), node("Mul", ["a", "e"], ["m"]),
                              node("ConstantOfShape", ["dims"], ["c"]),
                              node("Max", ["m", "c"], ["out"])],
                             [value_info("x", [2000, 3])], [value_info("out", [2000, 3])],
                             [initializer("w", [1, 3], [1, 2, 3]), integers("times", [2000, 1]),
                              integers("dims", [2000, 3])]),
        "column.onnx": model([node("Softmax", ["x"], ["out"], attributes={"axis": 0})], [x], [out]),
        "faint.onnx": model([node("Mul", ["x", "w"], ["out"], "fade")], [x], [out],
                            [initializer("w", [3], [1e-9, 2e-9, 3e-9])]),
        "captured.onnx": captured(),
        "untyped.onnx": untyped(),
        "loose.onnx": model([node("Neg", ["x"], ["out"])], [x], [out, value_info("w", ["n"])],
                            [initializer("w", [3], [1, 2, 3])]),
        "half_open.onnx": model([node("Mul", ["x", "w"], ["out"])], [value_info("x", ["n", 2])],
                                [value_info("out", ["n", 2])], [initializer("w", [2], [3, 5])]),
        "rows_of_8.onnx": model([node("Neg", ["x"], ["out"])], [value_info("x", ["batch", 8])],
                                [value_info("out", ["batch", 8])]),
        "list.onnx": model(
            [node("SequenceConstruct", ["x", "x"], ["list"]),
             node("ConcatFromSequence", ["list"], ["both"], attributes={"axis": 0}),
             node("Cast", ["both"], ["brief"], attributes={"to": BFLOAT16}),
             node("Cast", ["brief"], ["out"], attributes={"to": FLOAT}),
             node("ZipMap", ["x"], ["maps"], domain="ai.onnx.ml",
                  attributes={"classlabels_strings": ["a", "b", "c"]})], [x],
            [value_info("out", [4, 3]), list_of_maps("maps")], domains=["ai.onnx.ml"]),
        "batch.onnx": model([node("Neg", ["x"], ["out"])], [value_info("x", ["batch", 3])],
                            [value_info("out", ["batch", 3])]),
        "counter.onnx": model(
            [node("Add", ["state", "x"], ["next"]), node("Identity", ["next"], ["out"])],
            [x, value_info("state", [2, 3])], [out, value_info("next", [2, 3])]),
        "newer.onnx": model([node("Add", ["x", "y"], ["out"])], [x, y], [out], opset=99, ir=60),
        "unknown.onnx": model(
            [node("Frobnicate", ["x"], ["a"]), node("Whirl", ["a"], ["b"], domain="acme"),
             node("Twirl", ["b"], ["out"], domain="acme")], [x], [out], domains=["acme"]),
        "hole.onnx": model([node("Concat", ["x", "", "x"], ["out"], name="join")],
                           [value_info("x", [4])], [value_info("out", [8])]),
        "cyclic.onnx": model(
            [node("Add", ["x", "b"], ["a"], "first"), node("Neg", ["a"], ["b"], "second"),
             node("Exp", ["b"], ["out"])], [x], [out]),
        "dangling.onnx": model([node("Add", ["x", "nowhere"], ["out"], "lonely")], [x], [out]),
        "twice.onnx": model([node("Relu", ["x"], ["out"], "one"), node("Neg", ["x"], ["out"], "two")],
                            [x], [out]),
        "badtype.onnx": model([node("Add", ["x", "n"], ["out"], "mixed")],
                              [x, value_info("n", [2, 3], INT64)], [out]),
        "escape.onnx": model([node("Add", ["x", "w"], ["out"])], [x], [out],
                             [external("w", [2, 3], "../../x")]),
        "absent.onnx": model([node("Add", ["x", "w"], ["out"])], [x], [out],
                             [external("w", [2, 3], "absent.bin")]),
        "training.onnx": training(),
        "function.onnx": gradient_in_function(),
        "undifferentiable.onnx": model(
            [node("Det", ["x"], ["d"], "determinant"), gradient(["x"], [], "d", ["out"])],
            [value_info("x", [2, 2])], [value_info("out", [2, 2])], domains=[TRAINING]),
        "nested.onnx": nested(20000),
        "empty.onnx": b"",
        "noise.onnx": bytes((i * 151 + 87) % 256 for i in range(4000)),
        "lfs.onnx": b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 +
                    b"\nsize 12345\n",
        "page.onnx": b"<!DOCTYPE html>\n<html><head><title>404</title></head></html>\n",
        "zip.onnx": archive({"model.txt": b"not a model"}),
        "torch.onnx": archive({"archive/data.pkl": b"\x80\x02}q\x00.", "archive/version": b"3\n"}),
        "pickle.onnx": b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.",
    }


def tables():
    """Models whose inputs are columns of a table."""
    n1 = ["n", 1]
    number = field(1, field(1, FLOAT) + field(2, b""))
    by_number = field(1, "maps") + field(2, field(4, field(1, field(5, field(1, INT64) +
                                                                    field(2, number)))))
    return {
        "house.onnx": model(
            [node("Identity", ["town"], ["where"]), node("Add", ["rooms", "rooms"], ["twice"]),
             node("Not", ["garden"], ["paved"]), node("Identity", ["year"], ["since"]),
             node("Neg", ["area"], ["loss"]), node("Concat", ["area", "loss"], ["both"],
                                                   attributes={"axis": 1}),
             node("ZipMap", ["both"], ["score"], domain="ai.onnx.ml",
                  attributes={"classlabels_strings": ["yes", "no, never"]})],
            [value_info("town", n1, STRING), value_info("rooms", n1, INT64),
             value_info("garden", n1, BOOL), value_info("year", ["n"], INT64),
             value_info("area", n1)],
            [value_info("where", n1, STRING), value_info("twice", n1, INT64),
             value_info("paved", n1, BOOL), value_info("since", ["n"], INT64),
             list_of_maps("score")], domains=["ai.onnx.ml"]),
        "pixels.onnx": model([node("Neg", ["x"], ["out"])], [value_info("x", ["n", 1, 2, 2])],
                             [value_info("out", ["n", 1, 2, 2])]),
        "two.onnx": model([node("Concat", ["a", "b"], ["out"], attributes={"axis": 1}),
                           node("ZipMap", ["a"], ["maps"], domain="ai.onnx.ml",
                                attributes={"classlabels_int64s": [7, 9]})],
                          [value_info("a", ["n", 2]), value_info("b", n1)],
                          [value_info("out", ["n", 3]), by_number], domains=["ai.onnx.ml"]),
    }


def opsets():
    """Models to convert to other opsets."""
    x, out = value_info("x", [2, 3]), value_info("out", [2, 3])
    gamma = initializer("gamma", [3], [1, 2, 0.5])

    def branch(op, name):
        graph = field(1, node("Unsqueeze", ["b", "axis"], [f"{name}_a"])) + field(
            1, node(op, [f"{name}_a"], [f"{name}_b"])) + field(
            1, node("Squeeze", [f"{name}_b", "axis"], [name])) + field(2, name)
        return graph + field(12, value_info(name, [2, 3]))

    def body(name, graph):
        return field(5, field(1, name) + field(6, graph) + field(20, 5))

    choice = node("If", ["flag"], ["out"]) + body("then_branch", branch("Exp", "one")) + body(
        "else_branch", branch("Abs", "other"))

    def function(name, nodes, version):
        return field(25, field(1, name) + field(4, "p") + field(5, "q") +
                     b"".join(field(7, n) for n in nodes) + field(10, "acme") +
                     field(9, field(1, "") + field(2, version)))

    calls = [node("twice", ["x"], ["a"], domain="acme"), node("total", ["a"], ["out"],
                                                              domain="acme")]
    twice = function("twice", [node("Add", ["p", "p"], ["s"]), node("Relu", ["s"], ["q"])], 17)
    total = function("total", [node("ReduceSum", ["p"], ["s"]), node("Mul", ["s", "p"], ["q"])],
                     17)
    elder = function("twice", [node("Clip", ["p"], ["s"], attributes={"min": -1.0, "max": 1.0}),
                               node("Relu", ["s"], ["q"])], 9)
    newer = function("twice", [node("Cast", ["p"], ["i"], attributes={"to": INT64}),
                               node("BitwiseNot", ["i"], ["n"], "not"),
                               node("Cast", ["n"], ["q"], attributes={"to": FLOAT})], 18)
    points = [value_info("x", [1, 1, 4, 4]), value_info("where", [1, 2, 2, 2]),
              value_info("from", [4], INT64), value_info("to", [4], INT64),
              value_info("bits", [2, 3], INT64)]
    return {
        "spelled.onnx": model(
            [node("LayerNormalization", ["x", "gamma"], ["a"], attributes={"axis": 1}),
             node("Gelu", ["a"], ["b"]), node("RMSNormalization", ["b", "gamma"], ["out"])], [x],
            [out], [gamma], opset=23, ir=11),
        "blocked.onnx": model(
            [node("GridSample", ["x", "where"], ["a"], "grid"),
             node("Slice", ["a", "from", "to"], ["out"], "cut"),
             node("BitwiseXor", ["bits", "bits"], ["zero"], "xor")], points,
            [value_info("out", ["n", "c", "h", "w"]), value_info("zero", [2, 3], INT64)],
            opset=20),
        "branches.onnx": model([node("Neg", ["x"], ["b"]), choice],
                               [x, value_info("flag", [], 9)], [out], [integers("axis", [0])]),
        "calls.onnx": model(calls, [x], [out], domains=["acme"]) + twice + total,
        "elder_calls.onnx": model(calls, [x], [out], domains=["acme"]) + elder + total,
        "newer_calls.onnx": model(calls, [x], [out], domains=["acme"]) + newer + total,
    }


def custom():
    """Models for the operators of examples/example_ops.c."""
    def one(op, inputs, outputs, attributes=None, constants=(), extra=()):
        return model([node(op, [i for i, *_ in inputs] + list(extra), [o for o, *_ in outputs],
                           domain="example", attributes=attributes)],
                     [value_info(*i) for i in inputs], [value_info(*o) for o in outputs],
                     constants, domains=["example"])

    x, limits = ("x", ["n", 3]), {"low": -2.0, "high": 2.0, "leak": 0.5}
    recode = field(1, 2) + field(1, 2) + field(2, INT64) + field(8, "table") + field(
        9, struct.pack("<4q", 3, 30, 1, 10))
    return {
        "clip.onnx": one("Clip", [x], [("y", ["n", 3])], limits),
        "clip_wrong.onnx": one("Clip", [x], [("y", ["n", 3])], {"low": 3.0}),
        "clip_typo.onnx": one("Clip", [x], [("y", ["n", 3])], {"lou": 3.0}),
        "clip_int64.onnx": one("Clip", [("x", [2, 3], INT64)], [("y", [2, 3], INT64)]),
        "above.onnx": one("Above", [x], [("values", ["k"]), ("places", ["k"], INT64)]),
        "recode.onnx": one("Recode", [("x", ["n"], INT64)], [("y", ["n"], INT64)], None, [recode],
                           ["table"]),
        "recode_open.onnx": one("Recode", [("x", ["n"], INT64), ("table", [2, 2], INT64)],
                                [("y", ["n"], INT64)]),
        "mean.onnx": one("RunningMean", [x], [("mean", [])]),
        "join.onnx": one("Join", [(n, ["n"], STRING) for n in "abc"], [("text", ["n"], STRING)],
                         {"separator": "-"}),
    }


def tensors():
    one, two = [1, -2, 3, -4, 5, -6], [10, 20, 30, 40, 50, 60]
    x, y = npy(one, (2, 3)), npy(two, (2, 3))
    return {
        "x.npy": x,
        "y.npy": y,
        "sum.npy": npy([a + b for a, b in zip(one, two)], (2, 3)),
        "int.npy": npy(one, (2, 3), "<i8"),
        "flat.npy": npy(one, (6,)),
        "wide.npy": npy(one + [7, 8], (2, 4)),
        "xy.npz": archive({"x.npy": x, "y.npy": y}),
        "half.npz": archive({"x.npy": x}),
        "stranger.npz": archive({"x.npy": x, "z.npy": y}),
        "stream.npy": x + y + x,
        "cut.npy": x[:-4],
        "cut.npz": archive({"x.npy": x, "y.npy": y})[:-30],
        "nothing.npy": npy([], (0, 3)),
        "twice.npy": npy([2 * v for v in one], (2, 3)),
        "points.npy": npy([2, 1, 1, 2, 3, 1, 2, 2, -1, -2, -2, -1, -1, -1, -3, -2], (8, 2)),
        "labels.npy": npy([0, 0, 0, 0, 1, 1, 1, 1], (8,), "<i8"),
        "batch5.npy": npy(list(range(15)), (5, 3)),
        "row.csv": b"1,2,3\n4,5,6\n",
        "x.json": b'{"x": [[1, -2, 3], [-4, 5, -6]], "y": [[10, 20, 30], [40, 50, 60]]}\n',
    }


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in {**models(), **tables(), **opsets(), **custom(), **tensors()}.items():
        (folder / name).write_bytes(data)


if __name__ == "__main__":
    main()
