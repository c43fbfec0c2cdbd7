"""A boosted forest, trained on made-up rows: 100 trees of 31 leaves over 28 features.

Its batches are 1, 100 and 10,000 rows. It has to be trained: where most rows take few paths,
branches are foretold, and that is how compiled forests get fast.
"""
import numpy as np
import onnx
from onnx import TensorProto, helper

TREES, LEAVES, FEATURES, SAMPLE = 100, 31, 28, 20000
BATCHES = (1, 100, 10000)
NODE_LISTS = ("nodes_treeids", "nodes_nodeids", "nodes_featureids", "nodes_values", "nodes_modes",
              "nodes_truenodeids", "nodes_falsenodeids")
LEAF_LISTS = ("target_treeids", "target_nodeids", "target_ids", "target_weights")


def train(draw):
    from sklearn.ensemble import HistGradientBoostingRegressor
    rows = draw.standard_normal((SAMPLE, FEATURES), dtype=np.float32)
    score = np.sin(2 * rows[:, 0]) + rows[:, 1] * rows[:, 2] + np.abs(rows[:, 3])
    label = score + 0.5 * draw.standard_normal(SAMPLE) > 0.8
    forest = HistGradientBoostingRegressor(max_iter=TREES, max_leaf_nodes=LEAVES, random_state=31)
    return forest.fit(rows, label.astype(np.float64))


def round_down(threshold):
    """So that x <= threshold is the same for every x of float32."""
    value = np.float32(threshold)
    return float(np.nextafter(value, np.float32(-np.inf)) if value > threshold else value)


def attributes(forest):
    a = {key: [] for key in NODE_LISTS + LEAF_LISTS}

    def append(keys, *values):
        for key, value in zip(keys, values):
            a[key].append(value)
    for tree, (predictor,) in enumerate(forest._predictors):
        for place, node in enumerate(predictor.nodes):
            if node["is_leaf"]:
                append(NODE_LISTS, tree, place, 0, 0.0, "LEAF", 0, 0)
                append(LEAF_LISTS, tree, place, 0, float(node["value"]))
            else:
                append(NODE_LISTS, tree, place, int(node["feature_idx"]),
                       round_down(node["num_threshold"]), "BRANCH_LEQ", int(node["left"]),
                       int(node["right"]))
    return a


def model_of(forest):
    node = helper.make_node("TreeEnsembleRegressor", ["rows"], ["score"], "forest",
                            domain="ai.onnx.ml", n_targets=1, **attributes(forest))
    graph = helper.make_graph(
        [node], "forest",
        [helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["batch", FEATURES])],
        [helper.make_tensor_value_info("score", TensorProto.FLOAT, ["batch", 1])])
    return helper.make_model(graph, ir_version=8, opset_imports=[
        helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)])


def make(folder, is_wanted):
    places = [(folder / ("trees_%d_rows" % rows), rows) for rows in BATCHES]
    wanted = [(place, rows) for place, rows in places
              if is_wanted(place.name) and not (place / "inputs.npz").exists()]
    if not wanted:
        return
    draw = np.random.default_rng(31)
    model = model_of(train(draw))
    for place, rows in wanted:
        place.mkdir(parents=True, exist_ok=True)
        onnx.save(model, str(place / "model.onnx"))
        batch = draw.standard_normal((rows, FEATURES), dtype=np.float32)
        np.savez(place / "inputs.npz", rows=batch)
        print(place / "model.onnx")
