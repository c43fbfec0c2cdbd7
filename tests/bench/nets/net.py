"""A graph under construction, whose values know their shapes; weights are drawn from their names.

Weights have the spread that keeps the variance of activations (He et al. 2015, section 2.2), so
that numbers stay finite through any depth; they mean nothing.
"""
import zlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17


class Net:
    """Methods take and return names of values; `shape` has the sizes of each."""

    def __init__(self, name):
        self.name, self.nodes, self.weights, self.shape = name, [], {}, {}
        self.inputs, self.arrays = [], {}
        self.count = 0

    # -- the ground

    def generator(self, name):
        return np.random.default_rng(zlib.crc32(("%s/%s" % (self.name, name)).encode()))

    def feed(self, name, array):
        """An input and its value in the bench."""
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        self.inputs.append(helper.make_tensor_value_info(name, kind, array.shape))
        self.arrays[name], self.shape[name] = array, list(array.shape)
        return name

    def feed_normal(self, name, *shape):
        return self.feed(name, self.generator(name).standard_normal(shape, dtype=np.float32))

    def feed_ids(self, name, limit, *shape):
        return self.feed(name, self.generator(name).integers(0, limit, shape).astype(np.int64))

    def constant(self, array):
        array = np.asarray(array)
        content = zlib.crc32(array.tobytes() + repr(array.shape).encode())
        name = "constant_%s_%08x" % (array.dtype, content)
        self.weights[name], self.shape[name] = array, list(array.shape)
        return name

    def weight(self, name, shape, fan_in=None, gain=2.0):
        """A weight of that name; two layers of one name share it."""
        if name not in self.weights:
            spread = np.sqrt(gain / (fan_in or int(np.prod(shape[1:]))))
            values = self.generator(name).standard_normal(shape, dtype=np.float32)
            self.weights[name] = values * np.float32(spread)
            self.shape[name] = list(shape)
        return name

    def around(self, name, shape, center, spread=0.1):
        """A vector of scales, biases or slopes around a value."""
        if name not in self.weights:
            values = self.generator(name).standard_normal(shape, dtype=np.float32)
            self.weights[name] = np.float32(center) + np.float32(spread) * values
            self.shape[name] = list(shape)
        return name

    def op(self, kind, inputs, shape, outputs=1, **attributes):
        self.count += 1
        names = ["%s_%d%s" % (kind.lower(), self.count, "_%d" % k if outputs > 1 else "")
                 for k in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, "%s_%d" % (kind, self.count),
                                           **attributes))
        for name, sizes in zip(names, [shape] if outputs == 1 else shape):
            self.shape[name] = list(sizes)
        return names[0] if outputs == 1 else names

    def fresh(self):
        return "w%d" % (self.count + 1)

    # -- elementwise and moves

    def unary(self, kind, x, **attributes):
        return self.op(kind, [x], self.shape[x], **attributes)

    def binary(self, kind, a, b):
        return self.op(kind, [a, b], np.broadcast_shapes(self.shape[a], self.shape[b]))

    def add(self, a, b):
        return self.binary("Add", a, b)

    def mul(self, a, b):
        return self.binary("Mul", a, b)

    def relu(self, x):
        return self.unary("Relu", x)

    def relu6(self, x):
        low, high = self.constant(np.float32(0)), self.constant(np.float32(6))
        return self.op("Clip", [x, low, high], self.shape[x])

    def sigmoid(self, x):
        return self.unary("Sigmoid", x)

    def hard_swish(self, x):
        return self.unary("HardSwish", x)

    def prelu(self, x):
        slope = self.around(self.fresh() + ".slope", [self.shape[x][1], 1, 1], 0.25)
        return self.op("PRelu", [x, slope], self.shape[x])

    def gelu(self, x):
        """As opsets before 20 spell it: x / 2 * (1 + erf(x / sqrt 2))."""
        turned = self.unary("Erf", self.binary("Div", x, self.constant(np.float32(2 ** 0.5))))
        grown = self.mul(x, self.add(turned, self.constant(np.float32(1))))
        return self.mul(grown, self.constant(np.float32(0.5)))

    def reshape(self, x, *shape):
        total = int(np.prod(self.shape[x]))
        known = -int(np.prod(shape)) if -1 in shape else 1
        sizes = [total // known if s == -1 else s for s in shape]
        return self.op("Reshape", [x, self.constant(np.array(shape, np.int64))], sizes)

    def transpose(self, x, *perm):
        return self.op("Transpose", [x], [self.shape[x][p] for p in perm], perm=list(perm))

    def concat(self, xs, axis=1):
        sizes = list(self.shape[xs[0]])
        sizes[axis] = sum(self.shape[x][axis] for x in xs)
        return self.op("Concat", xs, sizes, axis=axis)

    def halves(self, x, axis=1):
        sizes = list(self.shape[x])
        sizes[axis] //= 2
        return self.op("Split", [x], [sizes, sizes], outputs=2, axis=axis)

    def gather(self, table, ids, axis=0):
        sizes = self.shape[table]
        return self.op("Gather", [table, ids],
                       sizes[:axis] + self.shape[ids] + sizes[axis + 1:], axis=axis)

    def upsample(self, x, times=2, mode="nearest"):
        sizes = self.shape[x][:2] + [s * times for s in self.shape[x][2:]]
        scales = self.constant(np.array([1, 1] + [times] * (len(sizes) - 2), np.float32))
        how = ({"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
               if mode == "nearest" else {"coordinate_transformation_mode": "half_pixel"})
        return self.op("Resize", [x, "", scales], sizes, mode=mode, **how)

    # -- layers

    def conv(self, x, filters, size=3, stride=1, groups=1, dilation=1, name=None, pad=None):
        """Any number of spatial axes; padded to keep the size at stride 1."""
        axes = len(self.shape[x]) - 2
        sizes = [size] * axes if isinstance(size, int) else list(size)
        name = name or self.fresh()
        pads = [(s - 1) * dilation // 2 for s in sizes] if pad is None else [pad] * axes
        weight = self.weight(name + ".weight", [filters, self.shape[x][1] // groups] + sizes)
        bias = self.around(name + ".bias", [filters], 0)
        out = [(n + 2 * p - (s - 1) * dilation - 1) // stride + 1
               for n, p, s in zip(self.shape[x][2:], pads, sizes)]
        return self.op("Conv", [x, weight, bias], [self.shape[x][0], filters] + out,
                       kernel_shape=sizes, strides=[stride] * axes, pads=pads * 2, group=groups,
                       dilations=[dilation] * axes)

    def depthwise(self, x, size=3, stride=1):
        return self.conv(x, self.shape[x][1], size, stride, groups=self.shape[x][1])

    def batch_norm(self, x):
        channels, name = [self.shape[x][1]], self.fresh()
        spread = self.around(name + ".var", channels, 1, 0.05)
        return self.op("BatchNormalization", [
            x, self.around(name + ".scale", channels, 1), self.around(name + ".bias", channels, 0),
            self.around(name + ".mean", channels, 0), spread], self.shape[x])

    def pool(self, kind, x, size, stride, pad=0):
        axes = len(self.shape[x]) - 2
        out = [(n + 2 * pad - size) // stride + 1 for n in self.shape[x][2:]]
        return self.op(kind + "Pool", [x], self.shape[x][:2] + out, kernel_shape=[size] * axes,
                       strides=[stride] * axes, pads=[pad] * 2 * axes)

    def global_pool(self, x):
        return self.op("GlobalAveragePool", [x], self.shape[x][:2] + [1] * (len(self.shape[x]) - 2))

    def linear(self, x, width, name=None, gain=1.0):
        """Over the last axis, as exporters write it: MatMul and Add."""
        name, ins = name or self.fresh(), self.shape[x][-1]
        weight = self.weight(name + ".weight", [ins, width], ins, gain)
        y = self.op("MatMul", [x, weight], self.shape[x][:-1] + [width])
        return self.add(y, self.around(name + ".bias", [width], 0))

    def gemm(self, x, width, name=None):
        name, ins = name or self.fresh(), self.shape[x][1]
        weight = self.weight(name + ".weight", [width, ins], ins, 1.0)
        bias = self.around(name + ".bias", [width], 0)
        return self.op("Gemm", [x, weight, bias], [self.shape[x][0], width], transB=1)

    def matmul(self, a, b):
        batch = np.broadcast_shapes(self.shape[a][:-2], self.shape[b][:-2])
        return self.op("MatMul", [a, b], list(batch) + [self.shape[a][-2], self.shape[b][-1]])

    def layer_norm(self, x, name=None):
        width, name = [self.shape[x][-1]], name or self.fresh()
        return self.op("LayerNormalization", [x, self.around(name + ".scale", width, 1),
                                              self.around(name + ".bias", width, 0)],
                       self.shape[x], axis=-1, epsilon=1e-5)

    def attention(self, x, heads, memory=None, width=None, name=None):
        """Scaled dot products of x with itself or with a memory, between four linear layers."""
        name, width = name or self.fresh(), width or self.shape[x][-1]
        part = width // heads
        source = memory or x

        def split(y, *perm):
            batch, length = self.shape[y][:2]
            return self.transpose(self.reshape(y, batch, length, heads, part), *perm)
        query = split(self.linear(x, width, name + ".query"), 0, 2, 1, 3)
        key = split(self.linear(source, width, name + ".key"), 0, 2, 3, 1)
        value = split(self.linear(source, width, name + ".value"), 0, 2, 1, 3)
        scores = self.mul(self.matmul(query, key), self.constant(np.float32(part ** -0.5)))
        mixed = self.matmul(self.unary("Softmax", scores, axis=-1), value)
        batch, length = self.shape[x][:2]
        joined = self.reshape(self.transpose(mixed, 0, 2, 1, 3), batch, length, width)
        return self.linear(joined, self.shape[x][-1], name + ".output")

    # -- the file

    def save(self, folder, outputs):
        graph = helper.make_graph(
            self.nodes, self.name, self.inputs,
            [helper.make_tensor_value_info(o, TensorProto.FLOAT, self.shape[o]) for o in outputs],
            [numpy_helper.from_array(a, n) for n, a in self.weights.items()])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)],
                                  ir_version=8, producer_name="bench topologies")
        folder.mkdir(parents=True, exist_ok=True)
        onnx.save(model, str(folder / "model.onnx"))
        np.savez(folder / "inputs.npz", **self.arrays)
