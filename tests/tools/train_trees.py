#!/usr/bin/env python3
"""Train models/digits_trees.onnx: a forest (ai.onnx.ml TreeEnsembleClassifier) that reads digits.

usage: train_trees.py [MODELS_DIR]

The forest is scikit-learn's; the ONNX node is written here by hand. Input `pixels` float[batch,64]
in 0..1, outputs `label` int64[batch] and `scores` float[batch,10]. Thresholds are rounded down to
float32, which keeps every comparison x <= threshold of float32 pixels exact. Run after
train_digits.py, whose held-out arrays serve this model too.
"""
import os
import pathlib
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np
import onnx
from onnx import TensorProto, helper
from sklearn.ensemble import ExtraTreesClassifier

import digits_data

TREES, LEAVES = 40, 80


def round_down(threshold):
    value = np.float32(threshold)
    return np.nextafter(value, np.float32(-np.inf)) if value > threshold else value


def tree_attributes(forest):
    a = {key: [] for key in (
        "nodes_treeids", "nodes_nodeids", "nodes_featureids", "nodes_values", "nodes_modes",
        "nodes_truenodeids", "nodes_falsenodeids", "nodes_missing_value_tracks_true",
        "class_treeids", "class_nodeids", "class_ids", "class_weights")}
    for tree_id, estimator in enumerate(forest.estimators_):
        tree = estimator.tree_
        for node in range(tree.node_count):
            leaf = tree.children_left[node] < 0
            a["nodes_treeids"].append(tree_id)
            a["nodes_nodeids"].append(node)
            a["nodes_featureids"].append(0 if leaf else int(tree.feature[node]))
            a["nodes_values"].append(0.0 if leaf else float(round_down(tree.threshold[node])))
            a["nodes_modes"].append("LEAF" if leaf else "BRANCH_LEQ")
            a["nodes_truenodeids"].append(0 if leaf else int(tree.children_left[node]))
            a["nodes_falsenodeids"].append(0 if leaf else int(tree.children_right[node]))
            a["nodes_missing_value_tracks_true"].append(0)
            if leaf:
                share = tree.value[node][0] / tree.value[node][0].sum() / len(forest.estimators_)
                for label in np.flatnonzero(share):
                    a["class_treeids"].append(tree_id)
                    a["class_nodeids"].append(node)
                    a["class_ids"].append(int(label))
                    a["class_weights"].append(float(share[label]))
    return a


def export(forest, path):
    node = helper.make_node(
        "TreeEnsembleClassifier", ["pixels"], ["label", "scores"], "forest", domain="ai.onnx.ml",
        classlabels_int64s=list(range(10)), post_transform="NONE", **tree_attributes(forest))
    graph = helper.make_graph(
        [node], "digits_trees",
        [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["batch", 64])],
        [helper.make_tensor_value_info("label", TensorProto.INT64, ["batch"]),
         helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", 10])],
        doc_string="Reads 8x8 handwritten digits, 64 pixels row by row, 0 to 1.")
    model = helper.make_model(
        graph, ir_version=8, producer_name="train_trees.py",
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)])
    onnx.checker.check_model(model)
    onnx.save(model, path)


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else
                          pathlib.Path(__file__).resolve().parents[2] / "models")
    images, labels, held, held_labels = digits_data.load()
    as_input = lambda x: x.reshape(len(x), 64).astype(np.float32) / np.float32(255)
    forest = ExtraTreesClassifier(TREES, max_leaf_nodes=LEAVES, random_state=11)
    forest.fit(as_input(images), labels)
    accuracy = forest.score(as_input(held), held_labels)
    print(f"digits_trees: held-out accuracy {accuracy:.4f} on {len(held)} images")
    export(forest, folder / "digits_trees.onnx")


if __name__ == "__main__":
    main()
