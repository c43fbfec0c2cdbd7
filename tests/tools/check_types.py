#!/usr/bin/env python3
"""check_types.py DUMP_PROGRAM - every element type that ONNX lists for an operator is prepared.

For every live version of an operator that opset 6 or later can reach, in all four domains of the pinned
onnx package, and for every combination of the types that its type constraints list, a session is made of
a model with that one node, its inputs of those types and of unknown shape (DUMP_PROGRAM --prepare). A
refusal is a failure: the row of the registry, from which `ort-inspect --supports` is printed, lists what
check_schema.py holds against the same schemas, so the two together say that what is listed runs.

Types of outputs that no input has are chosen by an attribute (DTYPE_ATTRIBUTES), the bodies of control
flow pass their inputs on. Combinations that the specification excludes are in excluded(), each with its
sentence. Options: --filter NAME. Closes with "N passed, N failed, N skipped", one test a combination.
"""
import argparse
import collections
import functools
import itertools
import pathlib
import re
import subprocess
import sys

import onnx
import onnx.defs
from onnx import TensorProto, helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "fuzz"))
from ops.case import type_proto  # noqa: E402
from ops.schemas import OPTIONAL, VARIADIC, schemas  # noqa: E402

NEWEST = onnx.defs.onnx_opset_version()
DOMAINS = ("", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training")

# The attribute that chooses the type of an output which no input has, by operator and variable.
DTYPE_ATTRIBUTES = {
    ("Bernoulli", "T2"): "dtype", ("BitCast", "T2"): "to", ("BlackmanWindow", "T2"): "output_datatype",
    ("Cast", "T2"): "to", ("DequantizeLinear", "T3"): "output_dtype", ("EyeLike", "T2"): "dtype",
    ("HammingWindow", "T2"): "output_datatype", ("HannWindow", "T2"): "output_datatype",
    ("LayerNormalization", "U"): "stash_type", ("MelWeightMatrix", "T3"): "output_datatype",
    ("Multinomial", "T2"): "dtype", ("RandomNormal", "T"): "dtype", ("RandomUniform", "T"): "dtype",
    ("RandomNormalLike", "T2"): "dtype", ("RandomUniformLike", "T2"): "dtype",
    ("SequenceEmpty", "S"): "dtype",
}

# Attributes without which a node can't be.
WINDOW = {"kernel_shape": [2, 2]}
ATTRIBUTES = {
    "AveragePool": WINDOW, "BitShift": {"direction": "LEFT"}, "Concat": {"axis": 0},
    "ConcatFromSequence": {"axis": 0}, "DepthToSpace": {"blocksize": 2},
    "Einsum": {"equation": "ij->ji"}, "FeatureVectorizer": {"inputdimensions": [1]},
    "GRU": {"hidden_size": 3}, "GroupNormalization": {"num_groups": 2}, "LRN": {"size": 3},
    "LSTM": {"hidden_size": 3}, "LinearAttention": {"kv_num_heads": 2, "q_num_heads": 2},
    "LinearRegressor": {"coefficients": [1.0, 2.0], "targets": 1}, "LpPool": WINDOW,
    "MaxPool": WINDOW, "MaxRoiPool": {"pooled_shape": [2, 2]}, "MaxUnpool": WINDOW,
    "Momentum": {"alpha": 0.5, "beta": 0.5, "mode": "standard", "norm_coefficient": 0.1},
    "Pad": {"pads": [0, 1]}, "RNN": {"hidden_size": 3}, "RandomNormal": {"shape": [2]},
    "RandomUniform": {"shape": [2]}, "RegexFullMatch": {"pattern": "a*"},
    "Scaler": {"offset": [0.0], "scale": [1.0]}, "Slice": {"starts": [0], "ends": [1]},
    "SpaceToDepth": {"blocksize": 2},
    "SVMRegressor": {"coefficients": [1.0], "n_supports": 1, "support_vectors": [1.0, 2.0],
                     "rho": [0.0], "kernel_params": [1.0, 0.0, 3.0], "kernel_type": "LINEAR"},
    "TfIdfVectorizer": {"max_gram_length": 1, "max_skip_count": 0, "min_gram_length": 1,
                        "mode": "TF", "ngram_counts": [0], "ngram_indexes": [0]},
    "TopK": {"k": 1}, "Unsqueeze": {"axes": [0]},
    "Upsample": {"scales": [1.0, 2.0], "height_scale": 2.0, "width_scale": 2.0},
}

# Optional inputs that exclude others, and those of which one is needed.
LEFT_OUT = {("Attention", "nonpad_kv_seqlen"), ("Resize", "sizes")}
NEEDED = {("Resize", "scales")}

# Inputs that a variadic parameter stands for: tensors, gradients and what is kept between steps.
VARIADICS = {"Adagrad": 3, "Adam": 4, "Momentum": 3}


def tensor_name(text):
    match = re.fullmatch(r"tensor\((\w+)\)", text)
    return match and match.group(1)


def number(text):
    return TensorProto.DataType.Value(text.upper())


@functools.cache
def bits(text):
    if text in ("bool", "string"):
        return {"bool": 8, "string": None}[text]
    if text.startswith("complex"):
        return int(text.removeprefix("complex"))
    import ml_dtypes
    dtype = helper.tensor_dtype_to_np_dtype(number(text))
    return (ml_dtypes.iinfo if "int" in dtype.name else ml_dtypes.finfo)(dtype).bits


def excluded(schema, bound):
    """Why the specification excludes this combination of types; None when it doesn't."""
    types = {k: v.replace(" ", "") for k, v in bound.items()}
    name = schema.name
    if name in ("SequenceInsert", "SequenceErase", "SequenceAt") and "T" in types and \
            types["S"] != f"seq({types['T']})":
        return "the tensor must have the same data type as those in the sequence"
    if name == "BitCast" and (bits(tensor_name(types["T1"])) != bits(tensor_name(types["T2"]))):
        return "the target must have the same bit-width as the input"
    return None


def variables(schema):
    """The type variables to choose: those of inputs, and of outputs that an attribute chooses."""
    of_inputs = {p.type_str for p in schema.inputs}
    chosen = []
    for c in schema.type_constraints:
        name = c.type_param_str
        if name in of_inputs or (schema.name, name) in DTYPE_ATTRIBUTES or \
                (schema.domain, schema.name, name) in MAKERS_BY_OUTPUT:
            chosen.append((name, sorted(c.allowed_type_strs)))
    return chosen


# ---- bodies

def port(name, text):
    return helper.make_value_info(name, type_proto(text))


def passing(text):
    """The body of a Loop that changes nothing."""
    flag = "tensor(bool)"
    return helper.make_graph([], "body", [port("i", "tensor(int64)"), port("c", flag),
                                          port("v", text)], [port("c", flag), port("v", text)])


def branch(schema, text, name):
    """A body without inputs whose output is x of the graph around it. Identity lacks some types
    that control flow takes; Loop has them all."""
    opset = max(schema.since_version, 6)
    allowed = onnx.defs.get_schema("Identity", opset).type_constraints[0].allowed_type_strs
    node = helper.make_node("Identity", ["x"], [name]) if text in allowed else \
        helper.make_node("Loop", ["", "condition", "x"], [name], body=passing(text))
    return helper.make_graph([node], name, [], [port(name, text)])


def if_node(schema, types):
    node = helper.make_node("If", ["condition"], ["y"],
                            then_branch=branch(schema, types["V"], "then"),
                            else_branch=branch(schema, types["V"], "else"))
    return node, [port("condition", "tensor(bool)"), port("x", types["V"])]


def loop_node(schema, types):
    node = helper.make_node("Loop", ["count", "condition", "x"], ["y"], body=passing(types["V"]))
    return node, [port("count", "tensor(int64)"), port("condition", "tensor(bool)"),
                  port("x", types["V"])]


def scan_node(schema, types):
    text = types["V"]
    body = helper.make_graph([], "body", [port("s", text), port("v", text)],
                             [port("s", text), port("v", text)])
    names = (["lengths"] if schema.since_version == 8 else []) + ["x", "w"]
    node = helper.make_node("Scan", names, ["y", "z"], body=body, num_scan_inputs=1)
    kinds = {"lengths": "tensor(int64)", "x": text, "w": text}
    return node, [port(n, kinds[n]) for n in names]


def sequence_map_node(schema, types):
    item = re.fullmatch(r"seq\((.*)\)", types["S"]).group(1)
    more = re.sub(r"seq\((.*)\)", r"\1", types["V"])
    body = helper.make_graph([helper.make_node("Identity", ["a"], ["c"])], "body",
                             [port("a", item), port("b", more)], [port("c", item)])
    node = helper.make_node("SequenceMap", ["x", "w"], ["y"], body=body)
    return node, [port("x", types["S"]), port("w", types["V"])]


def gradient_node(schema, types):
    """x by x: derivatives are of T2 only; any other type is an input that y doesn't depend on."""
    text = types["T1"]
    if text in ("tensor(float)", "tensor(double)", "tensor(float16)"):
        node = helper.make_node("Gradient", ["x"], ["y"], domain=schema.domain, xs=["x"], y="x")
        return node, [port("x", text)]
    node = helper.make_node("Gradient", ["x", "w"], ["y"], domain=schema.domain, xs=["x"],
                            zs=["w"], y="x")
    return node, [port("x", "tensor(float)"), port("w", text)]


# ---- nodes without inputs, or with attributes of the chosen types

def one(text, count=1):
    """A tensor of this type; zeros are every type's."""
    if text == "string":
        return helper.make_tensor("value", TensorProto.STRING, [count], [b"a"] * count)
    size = (bits(text) * count + 7) // 8
    return helper.make_tensor("value", number(text), [count], bytes(size), raw=True)


def constant_node(schema, types):
    text = types["T"]
    return helper.make_node("Constant", [], ["y"], value=one(tensor_name(text))), []


def constant_of_shape_node(schema, types):
    value = one(tensor_name(types["T2"]))
    node = helper.make_node("ConstantOfShape", ["x"], ["y"], value=value)
    return node, [port("x", types["T1"])]


def optional_node(schema, types):
    return helper.make_node("Optional", ["x"], ["y"]), [port("x", types["V"])]


def empty_optional_node(schema, types):
    return helper.make_node("Optional", [], ["y"], type=type_proto(types["V"])), []


KEYS = {"string": ("strings", ["a", "b"]), "int64": ("int64s", [1, 2]), "float": ("floats", [1.0, 2.0])}


def label_encoder_node(schema, types):
    key, value = tensor_name(types["T1"]), tensor_name(types["T2"])
    attributes = {}
    if schema.since_version == 1:
        attributes["classes_strings"] = ["a", "b"]
    else:
        for prefix, kind in (("keys", key), ("values", value)):
            if kind in KEYS:
                attributes[f"{prefix}_{KEYS[kind][0]}"] = KEYS[kind][1]
            else:
                attributes[f"{prefix}_tensor"] = one(kind, 2)
        if value not in KEYS:
            attributes["default_tensor"] = one(value)
    return ml_node(schema, types["T1"], attributes)


def ml_node(schema, text, attributes, outputs=1):
    node = helper.make_node(schema.name, ["x"], [f"y{k}" for k in range(outputs)],
                            domain="ai.onnx.ml", **attributes)
    return node, [port("x", text)]


def labels(types, variable, ints, strings):
    return {strings: ["a", "b"]} if "string" in types[variable] else {ints: [1, 2]}


def classifier_node(schema, types):
    attributes = labels(types, "T2", "classlabels_ints", "classlabels_strings")
    if schema.name == "LinearClassifier":
        attributes |= {"coefficients": [1.0, 2.0, 3.0, 4.0], "intercepts": [0.0, 0.0]}
    else:
        attributes |= {"coefficients": [1.0, -1.0], "support_vectors": [1.0, 2.0, 3.0, 4.0],
                       "vectors_per_class": [1, 1], "rho": [0.0],
                       "kernel_params": [1.0, 0.0, 3.0], "kernel_type": "LINEAR"}
    return ml_node(schema, types["T1"], attributes, 2)


def zip_map_node(schema, types):
    key = "classlabels_strings" if "string" in types["T"] else "classlabels_int64s"
    value = ["a", "b"] if "string" in types["T"] else [1, 2]
    return ml_node(schema, "tensor(float)", {key: value})


def cast_map_node(schema, types):
    kind = {"float": "TO_FLOAT", "int64": "TO_INT64", "string": "TO_STRING"}
    return ml_node(schema, types["T1"], {"cast_to": kind[tensor_name(types["T2"])]})


def category_mapper_node(schema, types):
    return ml_node(schema, types["T1"], {"cats_strings": ["a", "b"], "cats_int64s": [1, 2]})


def dict_vectorizer_node(schema, types):
    string = types["T1"].startswith("map(string")
    return ml_node(schema, types["T1"], {"string_vocabulary": ["a", "b"]} if string else
                   {"int64_vocabulary": [1, 2]})


def imputer_node(schema, types):
    whole = "int" in types["T"]
    return ml_node(schema, types["T"], {"imputed_value_int64s": [1], "replaced_value_int64": 2}
                   if whole else {"imputed_value_floats": [1.0], "replaced_value_float": 2.0})


def one_hot_encoder_node(schema, types):
    return ml_node(schema, types["T"], {"cats_strings": ["a"]} if "string" in types["T"] else
                   {"cats_int64s": [1]})


TREE = {"nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_featureids": [0, 0, 0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"], "nodes_values": [0.5, 0.0, 0.0],
        "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0]}


def old_tree_node(schema, types):
    if schema.name == "TreeEnsembleRegressor":
        more = {"n_targets": 1, "target_treeids": [0, 0], "target_nodeids": [1, 2],
                "target_ids": [0, 0], "target_weights": [1.0, 2.0]}
        return ml_node(schema, types["T"], TREE | more)
    more = {"class_treeids": [0, 0], "class_nodeids": [1, 2], "class_ids": [0, 1],
            "class_weights": [1.0, 2.0]}
    more |= labels(types, "T2", "classlabels_int64s", "classlabels_strings")
    return ml_node(schema, types["T1"], TREE | more, 2)


def tree_node(schema, types):
    kind = tensor_name(types["T"])
    modes = helper.make_tensor("modes", TensorProto.UINT8, [1], [0])
    return ml_node(schema, types["T"], {
        "tree_roots": [0], "nodes_modes": modes, "nodes_splits": one(kind),
        "nodes_featureids": [0], "nodes_truenodeids": [0], "nodes_trueleafs": [1],
        "nodes_falsenodeids": [1], "nodes_falseleafs": [1], "leaf_targetids": [0, 0],
        "leaf_weights": one(kind, 2), "n_targets": 1})


def grid_sample_node(schema, types):
    """Strings can't be mixed: any mode but the nearest sample multiplies by weights."""
    mode = "nearest" if types["T1"] == "tensor(string)" else "bilinear" \
        if schema.since_version == 16 else "linear"
    node = helper.make_node("GridSample", ["x", "grid"], ["y"], mode=mode)
    return node, [port("x", types["T1"]), port("grid", types["T2"])]


MAKERS = {"If": if_node, "Loop": loop_node, "Scan": scan_node, "SequenceMap": sequence_map_node,
          "Gradient": gradient_node, "Optional": optional_node, "GridSample": grid_sample_node,
          "LabelEncoder": label_encoder_node, "LinearClassifier": classifier_node,
          "SVMClassifier": classifier_node, "ZipMap": zip_map_node, "CastMap": cast_map_node,
          "CategoryMapper": category_mapper_node, "DictVectorizer": dict_vectorizer_node,
          "Imputer": imputer_node, "OneHotEncoder": one_hot_encoder_node,
          "TreeEnsembleClassifier": old_tree_node, "TreeEnsembleRegressor": old_tree_node,
          "TreeEnsemble": tree_node, "Constant": constant_node,
          "ConstantOfShape": constant_of_shape_node}

# Variables of outputs that a maker reads.
MAKERS_BY_OUTPUT = {("", "If", "V"), ("", "Constant", "T"), ("", "ConstantOfShape", "T2"),
                    ("ai.onnx.ml", "LabelEncoder", "T2"), ("ai.onnx.ml", "LinearClassifier", "T2"),
                    ("ai.onnx.ml", "SVMClassifier", "T2"), ("ai.onnx.ml", "ZipMap", "T"),
                    ("ai.onnx.ml", "CastMap", "T2"),
                    ("ai.onnx.ml", "TreeEnsembleClassifier", "T2")}


# ---- a node of any operator

def attributes_of(schema, types):
    attributes = dict(ATTRIBUTES.get(schema.name, {}))
    for variable, text in types.items():
        key = DTYPE_ATTRIBUTES.get((schema.name, variable))
        if key:
            inner = re.fullmatch(r"(?:seq\()?tensor\((\w+)\)\)?", text).group(1)
            attributes[key] = number(inner)
    if schema.name == "TfIdfVectorizer":
        attributes |= {"pool_strings": ["a"]} if "string" in types["T"] else {"pool_int64s": [1]}
    return {k: v for k, v in attributes.items() if k in schema.attributes}


def any_node(schema, types, optional):
    names, ports = [], []
    for p in schema.inputs:
        key = schema.name, p.name
        if key in LEFT_OUT or p.option == OPTIONAL and not optional and key not in NEEDED:
            names.append("")
            continue
        for _ in range(VARIADICS.get(schema.name, 1) if p.option == VARIADIC else 1):
            names.append(f"x{len(names)}")
            ports.append(port(names[-1], types.get(p.type_str, p.type_str)))
    while names and not names[-1]:
        names.pop()
    outputs = ["y"] + [f"y{k}" for k, p in enumerate(schema.outputs)
                       if k > 0 and p.option not in (OPTIONAL, VARIADIC)]
    node = helper.make_node(schema.name, names, outputs, domain=schema.domain,
                            **attributes_of(schema, types))
    return node, ports


def forms(schema, types):
    """Nodes of these types: with its optional inputs, and without when all types stay."""
    if schema.name in MAKERS:
        yield MAKERS[schema.name](schema, types)
        if schema.name == "Optional":
            yield empty_optional_node(schema, types)
        return
    yield any_node(schema, types, True)
    if any(p.option == OPTIONAL for p in schema.inputs):
        yield any_node(schema, types, False)


def one_node_model(schema, node, ports):
    outputs = [onnx.ValueInfoProto(name=o) for o in node.output]
    graph = helper.make_graph([node], "types", ports, outputs)
    opset = max(schema.since_version, 6)
    sets = [helper.make_opsetid("", NEWEST if schema.domain else opset)]
    if schema.domain:
        sets.append(helper.make_opsetid(schema.domain, schema.since_version))
    return helper.make_model(graph, opset_imports=sets, ir_version=14)


class Preparer:
    def __init__(self, program):
        self.process = subprocess.Popen([program, "--prepare"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)

    def refusal(self, model):
        """Why no session can be made of the model; empty when one can."""
        data = model.SerializeToString()
        self.process.stdin.write(b"%d\n" % len(data) + data)
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit("check_types: the program died")
        return self.process.stdout.read(int(line)).decode().lstrip("!").strip()


def operators():
    found = sorted({(s.domain, s.name) for s in onnx.defs.get_all_schemas_with_history()})
    return [key for key in found if key[0] in DOMAINS]


def show(schema, types):
    bound = " ".join(f"{k}={v}" for k, v in types.items())
    return f"{schema.domain or 'ai.onnx'}.{schema.name}-{schema.since_version} {bound}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--filter", default="")
    options = parser.parse_args()
    prepare = Preparer(options.program)
    count = collections.Counter()
    for domain, name in operators():
        if options.filter and options.filter != name:
            continue
        for schema in schemas(domain, name):
            names = variables(schema)
            for combination in itertools.product(*[allowed for _, allowed in names]):
                types = dict(zip([n for n, _ in names], combination, strict=True))
                if excluded(schema, types):
                    continue
                for node, ports in forms(schema, types):
                    why = prepare.refusal(one_node_model(schema, node, ports))
                    count["failed" if why else "passed"] += 1
                    if why:
                        print(f"not ok {show(schema, types)}: {why}")
    print(f"{count['passed']} passed, {count['failed']} failed, 0 skipped")
    return 1 if count["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
