"""chains.py - generator of attack.py for what the passes do: nodes of the operator tests behind one another.

The first input of each node is what the node before it gives; its other inputs are the recorded ones, as
initializers. Shapes are left out more often than not, attributes and constants take their extremes, and a
second use or a second output keeps a value alive that a rewrite would like to take away.
"""
import onnx
from onnx import helper

FLOAT = onnx.TensorProto.FLOAT
# What passes move, merge and look through: drawn as often as all other operators together.
MOVED = {"Transpose", "Reshape", "Squeeze", "Unsqueeze", "Concat", "Split", "Slice", "Gather", "Pad", "Conv", "MatMul",
         "Gemm", "Softmax", "ReduceMean", "ReduceSum", "Add", "Mul", "Sub", "Div", "Pow", "Sqrt", "Erf", "Cast", "Where",
         "Expand", "Flatten", "Tile", "Resize", "DepthToSpace", "LayerNormalization", "BatchNormalization",
         "QuantizeLinear", "DequantizeLinear", "Einsum", "MaxPool", "AveragePool", "Clip", "Relu", "Sigmoid"}


class Nodes:
    """(node, its recorded inputs, opsets, rank of what it gives) of operator tests that take a float tensor first."""

    def __init__(self, corpus, inputs_of, read_tensor):
        self.all, self.of_rank = [], {}
        for path, folder in corpus:
            model = onnx.load(str(path), load_external_data=False)
            try:
                given = {name: read_tensor(file) for name, file in inputs_of(model, folder)}
                gives = read_tensor(folder / "output_0.pb")
            except Exception:  # a sequence or an optional
                continue
            given.update((t.name, t) for t in model.graph.initializer)
            node = model.graph.node[0] if len(model.graph.node) == 1 else None
            if node is None or not node.input or node.input[0] not in given or not node.output[0]:
                continue
            if given[node.input[0]].data_type != FLOAT:
                continue
            opsets = {o.domain: o.version for o in model.opset_import}
            row = node, given, opsets, len(gives.dims) if gives.data_type == FLOAT else None
            rank = self.of_rank.setdefault(len(given[node.input[0]].dims), ([], []))
            rank[node.op_type in MOVED].append(row)
            self.all.append(row)

    def draw(self, rng, rank):
        """One that takes this rank, when there is any; half of the time one that passes move."""
        fitting = self.of_rank.get(rank) if rng.random() < 0.9 else None
        if fitting is None:
            return rng.choice(self.all)
        moved = rng.random() < 0.5
        return rng.choice(fitting[moved] or fitting[not moved])


def append(rng, nodes, graph, opsets, current, mutate_node, mutate_value):
    """One more node behind `current`, a name and a rank: what it gives, likewise, and its recorded input."""
    drawn, tensors, needs, rank = nodes.draw(rng, current[1])
    number = len(graph.node)
    node = graph.node.add()
    node.CopyFrom(drawn)
    node.name = ""
    for at, name in enumerate(node.input):
        if at == 0:
            node.input[at] = current[0]
        elif name in tensors:
            kept = graph.initializer.add()
            kept.CopyFrom(mutate_value(rng, tensors[name]) if rng.random() < 0.1 else tensors[name])
            kept.name = node.input[at] = f"{name}_{number}"
        elif name:
            node.input[at] = current[0]
    for at, name in enumerate(node.output):
        node.output[at] = f"v{number}_{at}" if name else ""
    if rng.random() < 0.2:
        mutate_node(rng, node)
    for domain, version in needs.items():
        opsets[domain] = max(opsets.get(domain, 1), version)
    return (node.output[0], rank), tensors[drawn.input[0]]


def chain(rng, nodes, mutate_node, mutate_value):
    """(model, the tensor for its input "x")."""
    graph, opsets, current, first = onnx.GraphProto(name="chain"), {"": 1}, ("x", None), None
    made = []
    for _ in range(rng.choice([2, 2, 3, 3, 4, 6])):
        at = current if rng.random() < 0.85 or not made else rng.choice(made)
        current, fed = append(rng, nodes, graph, opsets, at, mutate_node, mutate_value)
        first = first or fed
        made.append(current)
        if rng.random() < 0.15 and len(made) > 1:
            both = [made[-1][0], rng.choice(made)[0]]
            current = (f"joined{len(made)}", current[1])
            graph.node.append(helper.make_node(rng.choice(["Add", "Mul"]), both, [current[0]]))
            made.append(current)
    shape = rng.choice([None, None, None, list(first.dims), [f"d{i}" for i in range(len(first.dims))],
                        [rng.choice([d, "n"]) for d in first.dims]])
    graph.input.append(helper.make_tensor_value_info("x", FLOAT, shape))
    graph.output.extend(onnx.ValueInfoProto(name=n) for n in sorted({current[0], rng.choice(made)[0]}))
    if rng.random() < 0.1:
        opsets[""] = rng.choice([9, 11, 13, 17, 18, 21, 24])
    model = helper.make_model(graph, ir_version=10,
                              opset_imports=[helper.make_opsetid(d, v) for d, v in opsets.items()])
    fed = onnx.TensorProto()
    fed.CopyFrom(first)
    return model, (mutate_value(rng, fed) if rng.random() < 0.1 else fed)


def arguments_for(rng, model, fed, out, declared, tiers):
    """A tool that rewrites, runs or looks at the model, whose input has a declared shape or hasn't."""
    how = rng.random()
    if how < 0.5:
        return ["ort-run", model, "-i", f"x={fed}", "--hash", "--level", rng.choice("1233"), "--isa", rng.choice(tiers),
                "--threads", rng.choice("12"), "--timeout", "6", "--max-memory", "1G", "-q"]
    if how < 0.6:
        return ["ort-run", model, "-i", f"x={fed}", "--compare-levels", "--timeout", "6", "--max-memory", "1G"]
    if how < 0.7:
        return ["ort-inspect", model, rng.choice(["--check", "--costs", "--memory", "--shapes", "--nodes", "--svg"])]
    more = rng.choice([["-i", f"x={fed}"], ["--no-verify", "--contrib"], ["--no-verify", "--max-growth", "100x"],
                       ["--no-verify", "--opset", rng.choice(["7", "11", "13", "18", "21", "24"])],
                       ["--fp16", "-i", f"x={fed}"], ["--no-verify", "--make-dynamic", "x:0"]][:6 if declared else 5])
    return ["ort-optimize", model, "-q", "-o", out, "--timeout", "6", "--max-memory", "1G", *more]
