"""Models whose work lies in bodies of control flow, for providers: body_models.py OUT

loop: a state that goes through products, a captured value, a result of each round; the count of rounds is an input.
while: ends by what the body computes. scan: a state and slices; scan_back: from the last to the first, of a size that the
file doesn't tell; scan_odd: slices that begin where no part of a buffer can; scan_in_loop: of what a loop's body computed.
nested: a branch in a loop, taken in turns, beside a
state that passes through. grow: a state with more rows in each round. Beside each NAME.onnx lies NAME.npz.
"""
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

STATE = [4, 64]
random = np.random.default_rng(21)


def floats(*shape):
    return random.standard_normal(shape).astype(np.float32)


def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def nodes(text):
    """"MatMul h W -> hw; Tanh hw -> h2": operators, inputs, outputs."""
    made = []
    for line in text.split(";"):
        left, outputs = line.split("->")
        op, *inputs = left.split()
        made.append(helper.make_node(op, inputs, outputs.split()))
    return made


def body(text, inputs, outputs):
    return helper.make_graph(nodes(text) if isinstance(text, str) else text, "body", inputs, outputs)


def save(out, name, graph_nodes, inputs, outputs, constants, fed):
    graph = helper.make_graph(graph_nodes, name, inputs, outputs,
                              [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, out / f"{name}.onnx")
    np.savez(out / f"{name}.npz", **fed)


def rounds(*carried):
    return [value("i", [], TensorProto.INT64), value("cond", [], TensorProto.BOOL), *carried]


def loops(out, weight, x):
    again = value("cond2", [], TensorProto.BOOL)
    own = body("MatMul h W -> hw; Add hw c -> hc; Tanh hc -> h2; ReduceMax h2 -> m; Identity cond -> cond2",
               rounds(value("h", STATE)), [again, value("h2", STATE), value("m", [1, 1])])
    count = value("n", [], TensorProto.INT64)
    save(out, "loop", [*nodes("Relu x -> c"), helper.make_node("Loop", ["n", "", "x"], ["hN", "ms"], "loop", body=own),
                       *nodes("Exp hN -> y")], [value("x", STATE), count], [value("y", STATE), value("ms", ["n", 1, 1])],
         {"W": weight}, {"x": x, "n": np.int64(9)})
    own = body("MatMul h W -> hw; Tanh hw -> h2; Abs h2 -> a; ReduceMax a -> m; Squeeze m -> s; Greater s least -> cond2",
               rounds(value("h", STATE)), [again, value("h2", STATE)])
    save(out, "while", [helper.make_node("Loop", ["", "yes", "x"], ["y"], "loop", body=own)], [value("x", STATE)],
         [value("y", STATE)], {"W": weight / 2, "least": np.float32(0.05), "yes": np.array(True)}, {"x": x})
    own = body("Concat h c -> h2; MatMul h2 W -> hw; Softmax hw -> s; ReduceMax s -> m; Identity cond -> cond2",
               rounds(value("h", ["r", 64])), [again, value("h2", ["r2", 64]), value("m", [1, 1])])
    own.node[0].attribute.append(helper.make_attribute("axis", 0))
    save(out, "grow", [*nodes("Relu x -> c"), helper.make_node("Loop", ["n", "", "x"], ["y", "ms"], "loop", body=own)],
         [value("x", ["b", 64]), count], [value("y", ["rows", 64]), value("ms", ["n", 1, 1])], {"W": weight},
         {"x": x, "n": np.int64(6)})
    then = body("MatMul h W -> t; Relu t -> t2", [], [value("t2", STATE)])
    other = body("Mul h c -> e; Neg e -> e2", [], [value("e2", STATE)])
    own = body([*nodes("Mod i two -> r; Equal r zero -> even"),
                helper.make_node("If", ["even"], ["h2"], "if", then_branch=then, else_branch=other),
                *nodes("Identity cond -> cond2; Identity k -> k2")], rounds(value("h", STATE), value("k", STATE)),
               [again, value("h2", STATE), value("k2", STATE)])
    save(out, "nested", [*nodes("Relu x -> c"),
                         helper.make_node("Loop", ["n", "", "x", "c"], ["hN", "kN"], "loop", body=own),
                         *nodes("Add hN kN -> y")], [value("x", STATE), count], [value("y", STATE)],
         {"W": weight, "two": np.int64(2), "zero": np.int64(0)}, {"x": x, "n": np.int64(5)})


def scans(out, weight, x):
    own = body("MatMul h W -> hw; Add hw slice -> s; Sigmoid s -> h2; Mul h2 c -> o",
               [value("h", STATE), value("slice", STATE)], [value("h2", STATE), value("o", STATE)])
    save(out, "scan", [*nodes("Exp x -> c"), helper.make_node("Scan", ["x", "xs"], ["hN", "os"], "scan", body=own,
                                                              num_scan_inputs=1), *nodes("Softmax hN -> y")],
         [value("x", STATE), value("xs", ["T", *STATE])], [value("y", STATE), value("os", ["T", *STATE])], {"W": weight},
         {"x": x, "xs": floats(7, *STATE)})


def scan_of(shape, **attributes):
    own = body("MatMul h W -> hw; Add hw slice -> s; Sigmoid s -> h2; Mul h2 slice -> o; Neg s -> q",
               [value("h", shape), value("slice", shape)], [value("h2", shape), value("o", shape), value("q", shape)])
    return helper.make_node("Scan", ["h0", "xs"], ["hN", "os", "qs"], "scan", body=own, num_scan_inputs=1, **attributes)


def more_scans(out, weight, x):
    for name, shape, given, attributes in (
            ("scan_back", ["b", 64], STATE, {"scan_input_directions": [1], "scan_output_directions": [1, 0]}),
            ("scan_odd", [3, 64], [3, 64], {"scan_input_axes": [1], "scan_output_axes": [0, 1]}),
            ("scan_odd_rows", [1, 5], [1, 5], {})):
        rows = ["T", *shape] if name != "scan_odd" else [shape[0], "T", shape[1]]
        fed = floats(7, *given) if name != "scan_odd" else floats(given[0], 7, given[1])
        outs = [value("os", ["T", *shape]), value("qs", rows)]
        save(out, name, [scan_of(shape, **attributes)], [value("h0", shape), value("xs", rows)],
             [value("hN", shape), *outs], {"W": weight[:given[1], :given[1]]}, {"h0": floats(*given), "xs": fed})
    again = value("cond2", [], TensorProto.BOOL)
    own = body([*nodes("Mul k xs0 -> xs; Tanh k -> h0"), scan_of(STATE), *nodes("Add hN k -> k2; Identity cond -> cond2"),
                *nodes("ReduceMax os -> m")], rounds(value("k", STATE)), [again, value("k2", STATE), value("m", [1, 1, 1])])
    save(out, "scan_in_loop", [helper.make_node("Loop", ["n", "", "x"], ["y", "ms"], "loop", body=own)],
         [value("x", STATE), value("n", [], TensorProto.INT64), value("xs0", ["T", *STATE])],
         [value("y", STATE), value("ms", ["n", 1, 1, 1])], {"W": weight},
         {"x": x, "n": np.int64(3), "xs0": floats(7, *STATE)})


def main():
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    weight, x = floats(64, 64) / 8, floats(*STATE)
    loops(out, weight, x)
    scans(out, weight, x)
    more_scans(out, weight, x)


if __name__ == "__main__":
    main()
