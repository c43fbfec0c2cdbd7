"""Operators of com.microsoft.nchwc, which onnxruntime writes for its own processor (see
make_contrib.py). Each net exists twice, plain and in blocks of 8 or 16 channels; the plain one
gives the expected values, so that the tests need no processor that would write the other."""
import numpy as np
from contrib_case import F, real, save
from onnx import helper, numpy_helper

NCHWC = "com.microsoft.nchwc"


class Net:
    """A chain of operators on `x`, built plain and blocked side by side."""

    def __init__(self, name, block, x, channels_last=False):
        self.name, self.block, self.fed = f"nchwc{block}_{name}", block, x
        self.last = channels_last
        self.plain, self.blocked, self.weights = [], [], {"plain": [], "blocked": []}
        self.channels = x.shape[3 if channels_last else 1]
        self.count, self.value, self.inside = 0, ("x", "x"), False
        if channels_last:
            self.plain.append(helper.make_node("Transpose", ["x"], ["first"], perm=[0, 3, 1, 2]))
            self.value = ("first", "x")

    def pad(self, channels):
        return -(-channels // self.block) * self.block

    def enter(self):
        if not self.inside:
            attributes = {"channels_last": 1} if self.last else {}
            self.blocked.append(helper.make_node("ReorderInput", [self.value[1]], ["entered"],
                                                 domain=NCHWC, **attributes))
            self.value, self.inside = (self.value[0], "entered"), True

    def add(self, op, more=((), ()), activation=None, plain_op=None, plain_more=(), **attributes):
        self.count += 1
        out = f"v{self.count}"
        own = {k: v for k, v in attributes.items() if not k.startswith("plain_")}
        given = {k.removeprefix("plain_"): v for k, v in attributes.items()
                 if k.startswith("plain_")}
        fused = {"activation": activation[0]} if activation else {}
        if activation and activation[1]:
            fused["activation_params"] = activation[1]
        self.blocked.append(helper.make_node(op, [self.value[1], *more[1]], [out], domain=NCHWC,
                                             **own, **fused))
        common = {k: v for k, v in own.items() if k != "group"} if not plain_op else {}
        self.plain.append(helper.make_node(plain_op or op, [self.value[0], *more[0]], [out],
                                           **(common | given)))
        self.value, self.inside = (out, out), True

    def weight(self, side, array):
        name = f"w{len(self.weights[side])}"
        self.weights[side].append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def conv(self, maps, kernel, group=1, activation=None, total=None, **attributes):
        channels, block = self.channels // group, self.block
        w, b = real(maps, channels, kernel, kernel) / 4, real(maps)
        direct = group == 1 and channels < block
        depthwise = group > 1
        rows, columns = self.pad(maps), channels if direct or depthwise else self.pad(channels)
        if not direct:
            self.enter()
        wide = np.zeros((rows, columns, kernel, kernel), np.float32)
        wide[:maps, :channels] = w
        step = 1 if direct or depthwise else block
        laid = wide.reshape(rows // block, block, columns // step, step, kernel, kernel)
        laid = laid.transpose(0, 2, 4, 5, 3, 1).reshape(wide.shape)
        bias = np.zeros(rows, np.float32)
        bias[:maps] = b
        names = ([self.weight("plain", w), self.weight("plain", b)],
                 [self.weight("blocked", laid), self.weight("blocked", bias)])
        if total:
            names[1].append(total[1])
        self.add("Conv", names, activation, group=rows if depthwise else 1, plain_group=group,
                 kernel_shape=[kernel, kernel], **attributes)
        self.channels = maps
        if total:
            self.plain.append(helper.make_node("Add", [self.value[0], total[0]],
                                               [self.value[0] + "t"]))
            self.value = (self.value[0] + "t", self.value[1])
        if activation:
            self.activate(*activation)

    def activate(self, op, params):
        names = {"Relu": (), "LeakyRelu": ("alpha",), "HardSigmoid": ("alpha", "beta")}
        inputs, attributes = [self.value[0]], {}
        if op == "Clip":
            inputs += [self.weight("plain", np.float32(p)) for p in params]
        else:
            attributes = dict(zip(names[op], params, strict=True))
        self.plain.append(helper.make_node(op, inputs, [self.value[0] + "a"], **attributes))
        self.value = (self.value[0] + "a", self.value[1])

    def upsample(self, factors, mode, coordinates):
        scales = self.weight("plain", np.array([1, 1, *factors], np.float32))
        self.add("Upsample", ((("", scales)), ()), plain_op="Resize", scales=[1, 1, *factors],
                 mode=mode, coordinate_transformation_mode=coordinates, plain_mode=mode,
                 plain_coordinate_transformation_mode=coordinates, plain_nearest_mode="floor")

    def write(self):
        last = {"channels_last": 1} if self.last else {}
        self.blocked.append(helper.make_node("ReorderOutput", [self.value[1]], ["y"], domain=NCHWC,
                                             channels=self.channels, **last))
        perm = [0, 2, 3, 1] if self.last else [0, 1, 2, 3]
        self.plain.append(helper.make_node("Transpose", [self.value[0]], ["y"], perm=perm))
        models = []
        for side, nodes in (("blocked", self.blocked), ("plain", self.plain)):
            graph = helper.make_graph(
                nodes, self.name, [helper.make_tensor_value_info("x", F, self.fed.shape)],
                [helper.make_tensor_value_info("y", F, None)], self.weights[side])
            opsets = [helper.make_opsetid("", 17), helper.make_opsetid(NCHWC, 1)]
            models.append(helper.make_model(graph, opset_imports=opsets, ir_version=8))
        save(self.name, models[0], {"x": self.fed}, "Conv", domain=NCHWC, reference=models[1])


def nchwc_nets():
    for block in (8, 16):
        net = Net("image", block, real(2, 3, 17, 14))
        net.conv(24, 3, pads=[1, 1, 1, 1], strides=[2, 2], activation=("Relu", ()))
        net.add("MaxPool", kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        before = net.value
        net.conv(24, 3, pads=[1, 1, 1, 1], total=before, activation=("LeakyRelu", (0.25,)))
        net.add("AveragePool", kernel_shape=[2, 3], pads=[0, 1, 1, 0], strides=[1, 2])
        net.conv(40, 1, activation=("HardSigmoid", (0.3, 0.4)))
        net.write()

        net = Net("depthwise", block, real(1, 40, 9, 11))
        net.conv(40, 3, group=40, pads=[1, 1, 1, 1], activation=("Clip", (-0.5, 1.5)))
        net.conv(24, 5, pads=[2, 2, 2, 2], dilations=[1, 1], strides=[2, 1])
        net.upsample((2, 3), "nearest", "asymmetric")
        net.conv(24, 1)
        net.write()

        for coordinates in ("asymmetric", "align_corners", "half_pixel"):
            net = Net(f"linear_{coordinates}", block, real(1, 24, 4, 5))
            net.conv(24, 1)
            net.upsample((2, 3), "linear", coordinates)
            net.write()

        for pool in ("GlobalAveragePool", "GlobalMaxPool"):
            net = Net(f"last_{pool[6:-4].lower()}", block, real(2, 6, 7, 24), channels_last=True)
            net.conv(40, 3, auto_pad="SAME_UPPER", strides=[2, 2])
            net.add(pool)
            net.write()


GROUPS = [nchwc_nets]
