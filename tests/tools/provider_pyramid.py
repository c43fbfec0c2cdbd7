"""A model whose launches providers may put together: pools of one value, convolutions of two values that are there, moves."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper


def model_of(random):
    """Pools of one value: three of one size with windows of their own, a fourth; means that count their padding or don't;
    ones with another stride. Convolutions of one tap of values that are there, alike or not, or joined; of one that is made
    later; behind filters of one channel two apart. SpaceToDepth before a Gather of some of its channels, and one that others
    read. What is joined along rows: by seven, by two; turned, where there is one image."""
    nodes, weights = [], {}

    def add(op, inputs, output, **attributes):
        nodes.append(helper.make_node(op, inputs, [output], **attributes))
        return output

    def weight(*shape):
        weights[f"w{len(weights)}"] = random.standard_normal(shape).astype(np.float32) * np.float32(0.3)
        return f"w{len(weights) - 1}"

    weights["some"] = np.array([3, 0, 11, -1, 7, 2, 2, 9, 5, 10, -12, 6])
    chosen = add("Gather", [add("SpaceToDepth", ["x"], "deep", blocksize=2), "some"], "chosen", axis=1)
    seen = add("SpaceToDepth", ["x"], "seen", blocksize=2)
    add("Gather", [add("Relu", [seen], "seen_up"), "some"], "of_seen", axis=1)
    pools = [add("MaxPool", [chosen], f"p{k}", kernel_shape=[k, m], pads=[k // 2, m // 2] * 2)
             for k, m in ((3, 3), (5, 5), (7, 1), (9, 9))]
    means = [add("AveragePool", [chosen], f"m{k}", kernel_shape=[k, k], pads=[k // 2] * 4) for k in (3, 5)]
    padded = add("AveragePool", [chosen], "padded", kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=1)
    halves = [add("MaxPool", [chosen], f"h{k}", kernel_shape=[k, k], strides=[2, 2], auto_pad="SAME_UPPER") for k in (2, 3, 4)]
    first = add("Sigmoid", [add("Conv", [pools[0], weight(5, 12, 1, 1), weight(5)], "c0")], "first")
    plain = add("Conv", [pools[1], weight(33, 12, 1, 1), weight(33)], "plain")
    second = add("Sigmoid", [add("Conv", [pools[1], weight(33, 12, 1, 1), weight(33)], "c1")], "second")
    later = add("Sigmoid", [add("Conv", [add("Relu", [plain], "up"), weight(7, 33, 1, 1), weight(7)], "c2")], "later")
    wide = add("Conv", [pools[0], weight(9, 12, 3, 3), weight(9)], "wide", pads=[1] * 4)
    other = add("Conv", [pools[2], weight(9, 12, 3, 3), weight(9)], "other", pads=[1] * 4)
    apart = add("Conv", [add("Relu", [add("Conv", [chosen, weight(12, 1, 3, 3), weight(12)], "c3", group=12, strides=[2, 2],
                                          pads=[1] * 4)], "c4"), weight(21, 12, 1, 1), weight(21)], "apart")
    uneven = add("Conv", [add("Conv", [chosen, weight(12, 1, 5, 3)], "c5", group=12, strides=[2, 2], pads=[3, 0, 1, 2],
                              dilations=[1, 2]), weight(8, 12, 1, 1)], "uneven")
    aslant = add("Conv", [add("Conv", [chosen, weight(12, 1, 3, 3)], "c6", group=12, strides=[1, 2], pads=[1] * 4),
                          weight(8, 12, 1, 1)], "aslant")
    sides = [add("Conv", [halves[i], weight(6 + i, 12, 1, 1)], f"side{i}") for i in (0, 2)]
    add("Concat", sides, "sides", axis=1)
    weights["flat"] = np.array([0, 12, -1])
    parts = [add("Reshape", [v, "flat"], f"flat_{v}") for v in [*pools, *means, halves[1]]]
    add("Transpose", [add("Concat", parts, "long", axis=2)], "turned", perm=[0, 2, 1])
    add("Concat", [parts[0], parts[-1]], "two", axis=-1)
    add("Transpose", [add("Concat", halves, "wider", axis=3)], "axes", perm=[0, 3, 1, 2])
    add("Transpose", [add("Concat", [halves[0], halves[2]], "beside", axis=3)], "mixed", perm=[0, 1, 3, 2])
    results = ["of_seen", padded, "h4", first, second, later, wide, other, apart, uneven, aslant, "turned", "two", "axes",
               "mixed", "sides"]
    graph = helper.make_graph(nodes, "pyramid", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, "H", "W"])],
                              [helper.make_tensor_value_info(v, TensorProto.FLOAT, None) for v in results],
                              [numpy_helper.from_array(v, k) for k, v in weights.items()])
    return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])


def cases(random):
    """name, model, value: one image whose parts don't begin where memory may be divided; several; a large one."""
    model = model_of(random)
    for name, shape in (("one", (1, 3, 22, 26)), ("many", (3, 3, 20, 30)), ("large", (1, 3, 64, 108))):
        yield f"pyramid_of_{name}", model, random.standard_normal(shape).astype(np.float32)
