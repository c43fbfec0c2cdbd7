"""lleaves: forests compiled to machine code, from the ONNX node in LightGBM's text format.

Forms: a graph of one TreeEnsembleRegressor with one target. The compiled forest is not timed, nor
what compiling took.
"""
import os
import tempfile

import lleaves as engine
import numpy as np
from onnx import helper

from peers import forms

DEFAULTED_LEFT = 2      # decision type: a number, where NaN goes left as `<=` of ONNX does not


class Tree:
    """One tree's nodes by their numbers in the ONNX node."""

    def __init__(self):
        self.kind, self.feature, self.cut, self.children, self.weight = {}, {}, {}, {}, {}

    def text(self, number):
        """LightGBM's block: inner nodes and leaves numbered apart, leaf k as -k - 1."""
        inner = [n for n, kind in self.kind.items() if kind != "LEAF"]
        leaves = [n for n, kind in self.kind.items() if kind == "LEAF"]
        place = {n: k for k, n in enumerate(inner)}
        place.update((n, -k - 1) for k, n in enumerate(leaves))
        rows = {"split_feature": [self.feature[n] for n in inner],
                "threshold": [repr(float(self.cut[n])) for n in inner],
                "decision_type": [DEFAULTED_LEFT] * len(inner),
                "left_child": [place[self.children[n][0]] for n in inner],
                "right_child": [place[self.children[n][1]] for n in inner],
                "leaf_value": [repr(float(self.weight.get(n, 0.0))) for n in leaves]}
        lines = ["Tree=%d" % number, "num_leaves=%d" % len(leaves), "num_cat=0"]
        lines += ["%s=%s" % (key, " ".join(map(str, row))) for key, row in rows.items()]
        return lines + [""]


def read_forest(node):
    a = {x.name: helper.get_attribute_value(x) for x in node.attribute}
    trees = {}
    for tree, n, mode, feature, cut, left, right in zip(
            a["nodes_treeids"], a["nodes_nodeids"], a["nodes_modes"], a["nodes_featureids"],
            a["nodes_values"], a["nodes_truenodeids"], a["nodes_falsenodeids"]):
        t = trees.setdefault(tree, Tree())
        t.kind[n], t.feature[n], t.cut[n] = mode.decode(), feature, cut
        t.children[n] = left, right
        if t.kind[n] not in ("LEAF", "BRANCH_LEQ"):
            raise forms.Absent("%s, LightGBM splits by <= only" % t.kind[n])
    for tree, n, weight in zip(a["target_treeids"], a["target_nodeids"], a["target_weights"]):
        trees[tree].weight[n] = trees[tree].weight.get(n, 0.0) + weight
    return [trees[k] for k in sorted(trees)]


def lightgbm_text(forest, features):
    lines = ["tree", "version=v3", "num_class=1", "num_tree_per_iteration=1",
             "max_feature_idx=%d" % (features - 1), "objective=regression",
             "feature_infos=%s" % " ".join(["[-10:10]"] * features),
             "tree_sizes=%s" % " ".join(["1"] * len(forest)), ""]     # only their number is read
    for number, tree in enumerate(forest):
        lines += tree.text(number)
    return "\n".join(lines + ["end of trees", "", "pandas_categorical:null", ""])


class Session:
    def __init__(self, text, trees, threads):
        self.threads, self.trees = threads, trees
        with tempfile.TemporaryDirectory() as own:
            path = os.path.join(own, "model.txt")
            with open_file(path, "w") as file:
                file.write(text)
            self.engine = engine.Model(path)
            # For one row blocks of trees only cost (lleaves, Model.compile).
            self.batch = engine.Model(path)
            self.engine.compile(fcodemodel="small", use_fp64=False, fblocksize=trees)
            self.batch.compile(fcodemodel="small", use_fp64=False)

    def bind(self, inputs):
        (rows,) = inputs.values()
        self.rows = np.ascontiguousarray(rows, np.float32)
        self.best = self.engine if len(self.rows) == 1 else self.batch

    def run(self):
        self.result = self.best.predict(self.rows, n_jobs=self.threads)

    def outputs(self):
        return {0: np.asarray(self.result, np.float32).reshape(-1, 1)}


open_file = open


def open(folder, threads):
    graph = forms.load(folder, weights=False).graph
    node = graph.node[0]
    if len(graph.node) != 1 or node.op_type != "TreeEnsembleRegressor":
        raise forms.Absent("no forest with one score")
    features = graph.input[0].type.tensor_type.shape.dim[1].dim_value
    forest = read_forest(node)
    return Session(lightgbm_text(forest, features), len(forest), threads)
