"""The form of layers in a .tflite file: convolutions, pools, reductions, products and the like."""
import numpy as np

from peers.forms import Absent
from peers.tflite_file import Units, schema
from peers.tflite_graph import LAST, Coded, attributes, form

SAME, VALID = schema.Padding.SAME, schema.Padding.VALID
LOWEST = np.float32(-3e38)          # what no maximum takes


# Windows: convolutions and pools

class Window:
    """Where the window of a convolution or pool stands, along height and width."""

    def __init__(self, sizes, kernel, given):
        self.sizes, self.kernel = sizes, kernel
        self.strides = given.get("strides") or [1, 1]
        self.dilations = given.get("dilations") or [1, 1]
        self.reach = [(k - 1) * d + 1 for k, d in zip(kernel, self.dilations)]
        self.begin, self.counts = self.places(given)
        self.needed = [max((n - 1) * s + r - d, 0) for n, s, r, d
                       in zip(self.counts, self.strides, self.reach, sizes)]

    def places(self, given):
        """(padding before, number of places)"""
        auto = given.get("auto_pad", b"NOTSET")
        if auto in (b"SAME_UPPER", b"SAME_LOWER"):
            counts = [-(-d // s) for d, s in zip(self.sizes, self.strides)]
            total = [max((n - 1) * s + r - d, 0) for n, s, r, d
                     in zip(counts, self.strides, self.reach, self.sizes)]
            return [(t + (auto == b"SAME_LOWER")) // 2 for t in total], counts
        pads = given.get("pads") or [0] * 4
        room = [d + pads[k] + pads[k + 2] - r
                for k, (d, r) in enumerate(zip(self.sizes, self.reach))]
        up = [s - 1 if given.get("ceil_mode") else 0 for s in self.strides]
        counts = [(a + u) // s + 1 for a, u, s in zip(room, up, self.strides)]
        # A place that would begin in the padding behind is none.
        return pads[:2], [n - ((n - 1) * s >= d + p) for n, s, d, p
                          in zip(counts, self.strides, self.sizes, pads)]

    def padding(self):
        """The file's padding, or None where it asks for a PAD."""
        same = [-(-d // s) for d, s in zip(self.sizes, self.strides)]
        if not any(self.begin) and not any(self.needed):
            return VALID
        if list(self.counts) == same and all(b == n // 2 for b, n in zip(self.begin, self.needed)):
            return SAME
        return None

    def pads(self):
        ends = [max((n - 1) * s + r - d - b, 0) for n, s, r, d, b
                in zip(self.counts, self.strides, self.reach, self.sizes, self.begin)]
        return [[0, 0], [self.begin[0], ends[0]], [self.begin[1], ends[1]], [0, 0]]

    def settings(self, padding):
        return {"padding": padding, "strideH": self.strides[0], "strideW": self.strides[1]}


def padded(graph, value, pads, kind="PAD"):
    """The value with zeros around it (or what `kind` says); pads are in the tensor's order."""
    shape = list(value.shape)
    for axis, (begin, end) in zip(value.order, pads):
        shape[axis] += begin + end
    inputs = [value.tensor, graph.file.integers(pads)]
    if kind == "PADV2":
        lowest = LOWEST if value.units is None else graph.byte.type(np.iinfo(graph.byte).min)
        inputs.append(graph.file.constant(np.array([lowest]), value.units))
    return graph.emit(kind, inputs, shape, value.order, value.units, value.positive)


def placed(graph, value, window, kind="PAD"):
    """(value, padding): SAME or VALID, behind a PAD where neither is what the window asks for."""
    padding = window.padding()
    if padding is None:
        return padded(graph, value, window.pads(), kind), VALID
    return value, padding


def image_attributes(node, rank):
    """The attributes of a window; along one axis (rank 3) it gets a height of 1."""
    given = attributes(node)
    if rank == 3:
        for key in ("kernel_shape", "strides", "dilations"):
            if key in given:
                given[key] = [1, *given[key]]
        if "pads" in given:
            given["pads"] = [0, given["pads"][0], 0, given["pads"][1]]
    return given


def image(graph, value):
    if len(value.shape) == 3:
        value = graph.reshaped(value, (*value.shape[:2], 1, value.shape[2]))
    if len(value.shape) != 4:
        raise Absent("rank %d where images are asked for" % len(value.shape))
    return graph.moved(value, LAST[4])


def weight_of(graph, name, coded):
    array = graph.coded[name] if coded else graph.numbers(name)
    if coded and graph.byte == np.int8 and np.any(array.units.zero):
        raise Absent("int8 weights with a zero that isn't 0")
    if coded and graph.byte == np.uint8 and array.units.scale.size > 1:
        raise Absent("uint8 weights with units of their own by channel")
    return array


def bias_of(graph, name, count, value, weight):
    """The tensor of the bias: codes of int32 whose unit is that of the products."""
    coded = isinstance(weight, Coded)
    array = graph.numbers(name) if name else np.zeros(count, np.float32)
    array = np.broadcast_to(array.reshape(-1), [count])
    if not coded:
        return graph.file.constant(np.float32(array))
    scale = value.units.scale * weight.units.scale
    units = Units(scale, np.zeros(scale.size, np.int64), 0)
    if array.dtype != np.int32:
        array = np.int32(np.clip(np.round(np.float64(array) / scale), -2**31, 2**31 - 1))
    return graph.file.constant(np.ascontiguousarray(array), units)


def filters(weight, group, channels):
    """(operator, weights in its layout, settings)"""
    if group == channels and group > 1:
        return ("DEPTHWISE_CONV_2D", weight.transpose((1, 2, 3, 0)),
                {"depthMultiplier": weight.shape[0] // channels})
    return "CONV_2D", weight.transpose((0, 2, 3, 1)), {}


@form("Conv")
def convolution(graph, node):
    source = graph.value(node.input[0])
    given = image_attributes(node, len(source.shape))
    coded = graph.on_codes(node, node.input[0], node.input[1])
    value = image(graph, source if coded else graph.as_numbers(source))
    weight = weight_of(graph, node.input[1], coded)
    if len(source.shape) == 3:
        weight = weight.reshape((*weight.shape[:2], 1, weight.shape[2]))
    count = weight.shape[0]
    window = Window(value.shape[2:], weight.shape[2:], given)
    bias = bias_of(graph, node.input[2] if len(node.input) > 2 else "", count, value, weight)
    kind, weight, more = filters(weight, given.get("group", 1), value.shape[1])
    value, padding = placed(graph, value, window)
    last = graph.finish(
        node.output[0], kind, [value.tensor, graph.write_constant(weight), bias],
        (value.shape[0], count, *window.counts), LAST[4], coded, **window.settings(padding),
        dilationHFactor=window.dilations[0], dilationWFactor=window.dilations[1], **more)
    if len(source.shape) == 3:
        made = graph.values[last]
        graph.values[last] = graph.reshaped(made, (*made.shape[:2], made.shape[3]))


@form("ConvTranspose")
def transposed_convolution(graph, node):
    given = attributes(node)
    value = graph.as_numbers(graph.channels_last(node.input[0]))
    weight = graph.numbers(node.input[1])
    if given.get("group", 1) != 1 or any(d != 1 for d in given.get("dilations", [1])) \
            or any(given.get("pads", [0])) or any(given.get("output_padding", [0])):
        raise Absent("ConvTranspose with groups, dilations or padding")
    strides = given.get("strides") or [1, 1]
    sizes = [(d - 1) * s + k for d, s, k in zip(value.shape[2:], strides, weight.shape[2:])]
    shape = (value.shape[0], weight.shape[1], *sizes)
    bias = bias_of(graph, node.input[2] if len(node.input) > 2 else "", shape[1], value, weight)
    inputs = [graph.file.integers([shape[a] for a in LAST[4]]),
              graph.file.constant(weight.transpose(1, 2, 3, 0)), value.tensor, bias]
    graph.finish(node.output[0], "TRANSPOSE_CONV", inputs, shape, LAST[4], padding=VALID,
                 strideH=strides[0], strideW=strides[1])


def averaged_places(graph, value, window, given):
    """Zeros around the value count in an average, TFLite's own padding doesn't."""
    if given.get("ceil_mode"):
        raise Absent("AveragePool with ceil_mode")
    if given.get("count_include_pad") and window.padding() == SAME:
        return padded(graph, value, window.pads()), VALID
    if not given.get("count_include_pad") and window.padding() is None:
        raise Absent("AveragePool with padding that doesn't count")
    return placed(graph, value, window)


def pool(graph, node, kind):
    """The result has the operand's units, as TFLite asks."""
    source = graph.value(node.input[0])
    given = image_attributes(node, len(source.shape))
    value = image(graph, source)
    window = Window(value.shape[2:], given["kernel_shape"], given)
    if any(d != 1 for d in window.dilations) or len(node.output) > 1:
        raise Absent("%s with dilations or indices" % node.op_type)
    if kind == "AVERAGE_POOL_2D":
        value, padding = averaged_places(graph, value, window, given)
    else:
        value, padding = placed(graph, value, window, "PAD" if value.positive else "PADV2")
    shape = (*value.shape[:2], *window.counts)
    result = graph.emit(kind, [value.tensor], shape, LAST[4], value.units, value.positive,
                        filterHeight=window.kernel[0], filterWidth=window.kernel[1],
                        **window.settings(padding))
    graph.values[node.output[0]] = (graph.reshaped(result, (*shape[:2], shape[3]))
                                    if len(source.shape) == 3 else result)


@form("MaxPool")
def max_pool(graph, node):
    pool(graph, node, "MAX_POOL_2D")


@form("AveragePool")
def average_pool(graph, node):
    given, shape = attributes(node), graph.value(node.input[0]).shape
    if not any(given.get("pads") or [0]) and list(given["kernel_shape"]) == list(shape[2:]):
        reduced(graph, node, "MEAN", range(2, len(shape)), True)
    else:
        pool(graph, node, "AVERAGE_POOL_2D")


def reduced(graph, node, kind, axes, keep):
    coded = kind == "MEAN" and graph.on_codes(node, node.input[0])
    value = graph.value(node.input[0])
    value = value if coded else graph.as_numbers(value)
    axes = sorted(a % len(value.shape) for a in axes)
    shape = [1 if a in axes else d for a, d in enumerate(value.shape)]
    places = sorted(value.order.index(a) for a in axes)
    units = graph.units_ahead(node.output[0]) if coded else None
    result = graph.emit(kind, [value.tensor, graph.file.integers(places)], shape, value.order,
                        units, value.positive, keepDims=True)
    if not keep:
        result = graph.reshaped(result, [d for a, d in enumerate(shape) if a not in axes])
    graph.values[node.output[0]] = result


@form("GlobalAveragePool")
def global_average(graph, node):
    reduced(graph, node, "MEAN", range(2, len(graph.value(node.input[0]).shape)), True)


REDUCTIONS = {"ReduceMean": "MEAN", "ReduceSum": "SUM", "ReduceMax": "REDUCE_MAX",
              "ReduceMin": "REDUCE_MIN"}


@form(*REDUCTIONS)
def reduction(graph, node):
    if len(node.input) < 2:
        raise Absent("%s of all axes" % node.op_type)
    axes = graph.numbers(node.input[1]).tolist()
    reduced(graph, node, REDUCTIONS[node.op_type], axes, attributes(node).get("keepdims", 1))


@form("Pad")
def pad(graph, node):
    value = graph.value(node.input[0])
    number = graph.numbers(node.input[2]) if len(node.input) > 2 and node.input[2] else 0
    mode = attributes(node).get("mode", b"constant")
    if mode not in (b"constant", b"reflect") or np.any(number) or any(node.input[3:]):
        raise Absent("Pad with something else than zeros or a reflection, or of some axes")
    given, rank = graph.numbers(node.input[1]).tolist(), len(value.shape)
    pads = [[given[a], given[a + rank]] for a in value.order]
    if min(given) < 0:
        raise Absent("Pad that takes away")
    graph.values[node.output[0]] = padded(graph, value, pads,
                                          "PAD" if mode == b"constant" else "MIRROR_PAD")


# Products

def dense(graph, node, weight_name, bias_name, turned, factor=1.0):
    coded = graph.on_codes(node, node.input[0], weight_name) and factor == 1
    value = graph.value(node.input[0])
    value = value if coded else graph.as_numbers(value)
    value = graph.moved(value, range(len(value.shape)))
    weight = weight_of(graph, weight_name, coded)
    weight = weight if turned else weight.transpose((1, 0))
    count = weight.shape[0]
    bias = bias_of(graph, bias_name, count, value, weight)
    weight = weight if coded else np.float32(weight * factor)
    shape = (*value.shape[:-1], count)
    graph.finish(node.output[0], "FULLY_CONNECTED",
                 [value.tensor, graph.write_constant(weight), bias], shape, range(len(shape)),
                 coded, keepNumDims=len(shape) != 2)


@form("Gemm")
def gemm(graph, node):
    given = attributes(node)
    if given.get("transA", 0) or not graph.is_constant(node.input[1]):
        raise Absent("Gemm of a transposed or with a computed matrix")
    bias = node.input[2] if len(node.input) > 2 else ""
    if bias and given.get("beta", 1.0) != 1.0:
        raise Absent("Gemm with beta")
    dense(graph, node, node.input[1], bias, given.get("transB", 0), given.get("alpha", 1.0))


@form("MatMul")
def matrix_product(graph, node):
    a, b = node.input
    if graph.is_constant(b) and graph.numbers(b).ndim == 2 and not graph.is_constant(a):
        dense(graph, node, b, "", False)
        return
    left, right = (graph.as_numbers(graph.value(n)) for n in (a, b))
    left, right = (graph.moved(v, range(len(v.shape))) for v in (left, right))
    shape = (*np.broadcast_shapes(left.shape[:-2], right.shape[:-2]), left.shape[-2],
             right.shape[-1])
    graph.values[node.output[0]] = graph.emit("BATCH_MATMUL", [left.tensor, right.tensor], shape,
                                              range(len(shape)))




@form("LayerNormalization")
def layer_normalization(graph, node):
    """(x - mean) / sqrt(mean of squares + epsilon), along the last axis alone."""
    given, value = attributes(node), graph.as_numbers(graph.value(node.input[0]))
    rank = len(value.shape)
    if given.get("axis", -1) not in (-1, rank - 1) or len(node.output) > 1:
        raise Absent("LayerNormalization of several axes or results")
    value = graph.moved(value, range(rank))
    last, row = graph.file.integers([rank - 1]), (*value.shape[:-1], 1)

    def step(kind, *inputs, shape=value.shape, **settings):
        return graph.emit(kind, inputs, shape, range(rank), **settings)
    epsilon = graph.file.constant(np.array([given.get("epsilon", 1e-5)], np.float32))
    mean = step("MEAN", value.tensor, last, shape=row, keepDims=True)
    centred = step("SUB", value.tensor, mean.tensor)
    squares = step("MUL", centred.tensor, centred.tensor)
    variance = step("MEAN", squares.tensor, last, shape=row, keepDims=True)
    factor = step("RSQRT", step("ADD", variance.tensor, epsilon, shape=row).tensor, shape=row)
    result = step("MUL", centred.tensor, factor.tensor)
    for kind, name in zip(("MUL", "ADD"), node.input[1:]):
        result = step(kind, result.tensor, graph.write_constant(graph.numbers(name)))
    graph.values[node.output[0]] = result
