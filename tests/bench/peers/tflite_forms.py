"""The form that ONNX operators have in a .tflite file: codes, maps of elements, moves.

A form leaves the node's result in graph.values, or raises Absent. What TFLite has no operator for
is made of others, as its own converter makes it. Operators work on codes where XNNPACK can: the
others get numbers. tflite_layers.py has the layers.
"""
import numpy as np

from peers.forms import Absent
from peers.tflite_file import Units
from peers.tflite_graph import ACTIVATIONS, LAST, Value, attributes, clip_bounds, form

# Quantization

@form("DequantizeLinear")
def dequantize(graph, node):
    name, out = node.input[0], node.output[0]
    if name in graph.constants:
        graph.coded[out] = graph.coded_constant(node)
        return
    graph.values[out] = graph.value(name)


@form("QuantizeLinear")
def quantize(graph, node):
    graph.values[node.output[0]] = graph.in_units(graph.value(node.input[0]), graph.units(node))


# Element by element

def operand(graph, name, rank, order, coded):
    """The tensor of an operand in an order of that rank."""
    if graph.is_constant(name):
        array = graph.coded[name] if coded else np.float32(graph.numbers(name))
        array = array.reshape([1] * (rank - len(array.shape)) + list(array.shape)).transpose(order)
        return graph.write_constant(array if coded or array.size > 1 else array.reshape(1))
    value = graph.value(name) if coded else graph.as_numbers(graph.value(name))
    if len(value.shape) < rank:
        value = graph.reshaped(value, [1] * (rank - len(value.shape)) + list(value.shape))
    return graph.moved(value, order).tensor


def shape_of(graph, name):
    return graph.numbers(name).shape if graph.is_constant(name) else graph.value(name).shape


def broadcast(graph, names):
    """(shape, order): that of the largest operand which isn't a constant."""
    shape = np.broadcast_shapes(*(shape_of(graph, n) for n in names))
    values = [graph.value(n) for n in names if not graph.is_constant(n)]
    whole = [v for v in values if len(v.shape) == len(shape)]
    best = max(whole, key=lambda v: np.prod(v.shape), default=None)
    return shape, best.order if best else tuple(range(len(shape)))


BINARY = {"Add": "ADD", "Sub": "SUB", "Mul": "MUL", "Div": "DIV"}


@form(*BINARY)
def binary(graph, node):
    coded = node.op_type != "Div" and graph.on_codes(node, *node.input)
    shape, order = broadcast(graph, node.input)
    inputs = [operand(graph, n, len(shape), order, coded) for n in node.input]
    graph.finish(node.output[0], BINARY[node.op_type], inputs, shape, order, coded)


@form("Max", "Min", "Sum")
def of_many(graph, node):
    kind = {"Max": "MAXIMUM", "Min": "MINIMUM", "Sum": "ADD"}[node.op_type]
    shape, order = broadcast(graph, node.input)
    inputs = [operand(graph, n, len(shape), order, False) for n in node.input]
    value = Value(inputs[0], shape, tuple(order), None, False)
    for tensor in inputs[1:]:
        value = graph.emit(kind, [value.tensor, tensor], shape, order)
    graph.values[node.output[0]] = value


UNARY = {"Tanh": "TANH", "Exp": "EXP", "Sqrt": "SQRT", "Abs": "ABS", "Neg": "NEG", "Log": "LOG",
         "HardSwish": "HARD_SWISH", "Floor": "FLOOR", "Ceil": "CEIL", "Sin": "SIN", "Cos": "COS"}


def mapped(graph, node, kind, **settings):
    value = graph.as_numbers(graph.value(node.input[0]))
    graph.values[node.output[0]] = graph.emit(kind, [value.tensor], value.shape, value.order,
                                              **settings)


@form(*UNARY)
def unary(graph, node):
    mapped(graph, node, UNARY[node.op_type])


@form("Sigmoid")
def sigmoid(graph, node):
    coded = graph.on_codes(node, node.input[0])
    value = graph.value(node.input[0])
    probabilities(graph, node, "LOGISTIC", value if coded else graph.as_numbers(value))


@form("Softmax")
def softmax(graph, node):
    value = graph.value(node.input[0])
    axis = attributes(node).get("axis", -1) % len(value.shape)
    if value.order[-1] != axis:
        value = graph.moved(value, [a for a in value.order if a != axis] + [axis])
    value = value if graph.on_codes(node, node.input[0]) else graph.as_numbers(value)
    probabilities(graph, node, "SOFTMAX", value, beta=1.0)


def probabilities(graph, node, kind, value, **settings):
    """On codes, the result has the units that TFLite gives numbers from 0 to 1."""
    units = None
    if value.units is not None:
        lowest = np.array([np.iinfo(graph.byte).min], np.int64)
        units = Units(np.array([1 / 256], np.float32), lowest, 0)
    graph.values[node.output[0]] = graph.emit(kind, [value.tensor], value.shape, value.order, units,
                                              True, **settings)


@form("LeakyRelu")
def leaky_relu(graph, node):
    mapped(graph, node, "LEAKY_RELU", alpha=attributes(node).get("alpha", 0.01))


@form("Elu")
def elu(graph, node):
    if attributes(node).get("alpha", 1.0) != 1.0:
        raise Absent("Elu with alpha")
    mapped(graph, node, "ELU")


@form("Gelu")
def gelu(graph, node):
    mapped(graph, node, "GELU", approximate=attributes(node).get("approximate") == b"tanh")


@form("PRelu")
def prelu(graph, node):
    value = graph.as_numbers(graph.value(node.input[0]))
    slope = operand(graph, node.input[1], len(value.shape), value.order, False)
    graph.values[node.output[0]] = graph.emit("PRELU", [value.tensor, slope], value.shape,
                                              value.order)


@form("Pow")
def power(graph, node):
    if not np.all(graph.numbers(node.input[1]) == 2):
        raise Absent("Pow other than squares")
    value = graph.as_numbers(graph.value(node.input[0]))
    graph.values[node.output[0]] = graph.emit("MUL", [value.tensor] * 2, value.shape, value.order,
                                              positive=True)


@form("Equal")
def equal(graph, node):
    shape, order = broadcast(graph, node.input)
    inputs = [operand(graph, n, len(shape), order, False) for n in node.input]
    graph.values[node.output[0]] = graph.emit("EQUAL", inputs, shape, order, dtype=np.bool_)


@form("Where")
def where(graph, node):
    shape, order = broadcast(graph, node.input)
    inputs = [operand(graph, n, len(shape), order, False) for n in node.input]
    graph.values[node.output[0]] = graph.emit("SELECT_V2", inputs, shape, order)


@form("Relu", "Clip")
def bounded(graph, node):
    """What no operator before it took in."""
    value, activation = graph.value(node.input[0]), graph.activation(node)
    names = {ACTIVATIONS.RELU: "RELU", ACTIVATIONS.RELU6: "RELU6"}
    if activation in names:
        value = graph.emit(names[activation], [value.tensor], value.shape, value.order, value.units,
                           True)
    else:
        value = graph.as_numbers(value)
        for kind, bound in zip(("MAXIMUM", "MINIMUM"), clip_bounds(graph, node)):
            if bound is not None:
                limit = graph.file.constant(np.array([bound], np.float32))
                value = graph.emit(kind, [value.tensor, limit], value.shape, value.order)
    graph.values[node.output[0]] = value


@form("HardSigmoid")
def hard_sigmoid(graph, node):
    """min(max(a x + b, 0), 1) as relu6(6 a x + 6 b) / 6: RELU6 can be part of the sum."""
    given, value = attributes(node), graph.as_numbers(graph.value(node.input[0]))
    steps = (("MUL", 6 * given.get("alpha", 0.2), ACTIVATIONS.NONE),
             ("ADD", 6 * given.get("beta", 0.5), ACTIVATIONS.RELU6),
             ("MUL", 1 / 6, ACTIVATIONS.NONE))
    for kind, number, activation in steps:
        constant = graph.file.constant(np.array([number], np.float32))
        value = graph.emit(kind, [value.tensor, constant], value.shape, value.order, None, True,
                           fusedActivationFunction=activation)
    graph.values[node.output[0]] = value


# Moves

@form("Identity", "Dropout")
def identity(graph, node):
    graph.values[node.output[0]] = graph.value(node.input[0])


@form("Transpose")
def transpose(graph, node):
    """No element moves: the tensor's axes are other axes of the value."""
    value = graph.value(node.input[0])
    axes = attributes(node).get("perm") or list(range(len(value.shape)))[::-1]
    graph.values[node.output[0]] = value._replace(
        shape=tuple(value.shape[a] for a in axes), order=tuple(axes.index(a) for a in value.order))


@form("Reshape")
def reshape(graph, node):
    value, asked = graph.value(node.input[0]), graph.numbers(node.input[1]).tolist()
    shape = [value.shape[k] if d == 0 else d for k, d in enumerate(asked)]
    if -1 in shape:
        shape[shape.index(-1)] = int(-np.prod(value.shape) // np.prod(shape))
    graph.values[node.output[0]] = graph.reshaped(value, shape)


@form("Flatten")
def flatten(graph, node):
    value, axis = graph.value(node.input[0]), attributes(node).get("axis", 1)
    shape = [int(np.prod(value.shape[:axis])), int(np.prod(value.shape[axis:]))]
    graph.values[node.output[0]] = graph.reshaped(value, shape)


@form("Squeeze")
def squeeze(graph, node):
    value = graph.value(node.input[0])
    axes = (graph.numbers(node.input[1]) % len(value.shape)).tolist() if len(node.input) > 1 \
        else [a for a, d in enumerate(value.shape) if d == 1]
    shape = [d for a, d in enumerate(value.shape) if a not in axes]
    graph.values[node.output[0]] = graph.reshaped(value, shape)


@form("Unsqueeze")
def unsqueeze(graph, node):
    value, axes = graph.value(node.input[0]), graph.numbers(node.input[1]).tolist()
    rank, rest = len(value.shape) + len(axes), list(value.shape)
    new = {a % rank for a in axes}
    graph.values[node.output[0]] = graph.reshaped(
        value, [1 if a in new else rest.pop(0) for a in range(rank)])


@form("Concat")
def concat(graph, node):
    values = [graph.value(n) for n in node.input]
    units = graph.units_ahead(node.output[0])
    if units is not None and all(v.units is not None for v in values):
        values = [graph.in_units(v, units) for v in values]
    else:
        units, values = None, [graph.as_numbers(v) for v in values]
    order, shape = values[0].order, list(values[0].shape)
    axis = attributes(node)["axis"] % len(shape)
    shape[axis] = sum(v.shape[axis] for v in values)
    graph.values[node.output[0]] = graph.emit(
        "CONCATENATION", [graph.moved(v, order).tensor for v in values], shape, order, units,
        all(v.positive for v in values), axis=order.index(axis))


def part(graph, value, begins, sizes):
    """The elements from `begins` on, by axes of the value."""
    inputs = [value.tensor] + [graph.file.integers([numbers[a] for a in value.order])
                               for numbers in (begins, sizes)]
    return graph.emit("SLICE", inputs, sizes, value.order, value.units, value.positive)


@form("Split")
def split(graph, node):
    value, begin = graph.value(node.input[0]), 0
    axis, count = attributes(node).get("axis", 0) % len(value.shape), len(node.output)
    sizes = (graph.numbers(node.input[1]).tolist() if len(node.input) > 1
             else [-(-value.shape[axis] // count)] * (count - 1))
    for size, name in zip([*sizes, value.shape[axis] - sum(sizes)], node.output):
        begins, shape = [0] * len(value.shape), list(value.shape)
        begins[axis], shape[axis] = begin, size
        graph.values[name] = part(graph, value, begins, shape)
        begin += size


@form("Slice")
def slice_of(graph, node):
    value = graph.value(node.input[0])
    numbers = [graph.numbers(n).tolist() for n in node.input[1:] if n]
    starts, ends = numbers[:2]
    axes = numbers[2] if len(numbers) > 2 else range(len(starts))
    if len(numbers) > 3 and any(step != 1 for step in numbers[3]):
        raise Absent("Slice with steps")
    begins, sizes = [0] * len(value.shape), list(value.shape)
    for start, end, axis in zip(starts, ends, axes):
        start, end, _ = slice(start, end).indices(value.shape[axis])
        begins[axis], sizes[axis] = start, end - start
    graph.values[node.output[0]] = part(graph, value, begins, sizes)


@form("SpaceToDepth")
def space_to_depth(graph, node):
    value, size = graph.channels_last(node.input[0]), attributes(node)["blocksize"]
    batch, channels, height, width = value.shape
    graph.values[node.output[0]] = graph.emit(
        "SPACE_TO_DEPTH", [value.tensor], (batch, channels * size ** 2, height // size,
                                           width // size), LAST[4], value.units, value.positive,
        blockSize=size)


@form("DepthToSpace")
def depth_to_space(graph, node):
    value, size = graph.channels_last(node.input[0]), attributes(node)["blocksize"]
    batch, channels, height, width = value.shape
    if attributes(node).get("mode", b"DCR") != b"DCR" and channels != size ** 2:
        raise Absent("DepthToSpace with channels outermost")
    graph.values[node.output[0]] = graph.emit(
        "DEPTH_TO_SPACE", [value.tensor], (batch, channels // size ** 2, height * size,
                                           width * size), LAST[4], value.units, value.positive,
        blockSize=size)


@form("Gather")
def gather(graph, node):
    """One slice, or channels in another order before a convolution: an order of its weights."""
    value, indices = graph.value(node.input[0]), graph.numbers(node.input[1])
    axis = attributes(node).get("axis", 0) % len(value.shape)
    if indices.ndim == 0:
        begins, sizes = [0] * len(value.shape), list(value.shape)
        begins[axis], sizes[axis] = int(indices) % sizes[axis], 1
        graph.values[node.output[0]] = graph.reshaped(part(graph, value, begins, sizes),
                                                      sizes[:axis] + sizes[axis + 1:])
        return
    gather_channels(graph, node, value, axis)


def gather_channels(graph, node, value, axis):
    user = graph.only_user(node.output[0])
    if axis != 1 or user is None or user.op_type != "Conv" \
            or attributes(user).get("group", 1) != 1 or user.input[1] not in graph.constants:
        raise Absent("Gather of several slices")
    weight = graph.constants[user.input[1]]
    made = np.zeros((weight.shape[0], value.shape[1], *weight.shape[2:]), weight.dtype)
    for k, channel in enumerate(graph.numbers(node.input[1]).reshape(-1)):
        made[:, channel] += weight[:, k]
    graph.constants[user.input[1]] = made
    graph.values[node.output[0]] = value


@form("Resize")
def resize(graph, node):
    given, value = attributes(node), graph.as_numbers(graph.channels_last(node.input[0]))
    if len(node.input) > 3 and node.input[3]:
        shape = graph.numbers(node.input[3]).tolist()
    else:
        shape = [int(d * s) for d, s in zip(value.shape, graph.numbers(node.input[2]))]
    place = given.get("coordinate_transformation_mode", b"half_pixel")
    mode = given.get("mode", b"nearest")
    plain = place == b"asymmetric" and given.get("nearest_mode") == b"floor"
    if mode == b"cubic" or (mode == b"nearest" and not plain) \
            or place not in (b"asymmetric", b"half_pixel", b"align_corners"):
        raise Absent("Resize %s %s" % (mode.decode(), place.decode()))
    whole = not any(a % b for a, b in zip(shape, value.shape))
    if mode == b"nearest" and whole:
        graph.values[node.output[0]] = repeated(graph, value, shape)
        return
    kind = "RESIZE_BILINEAR" if mode == b"linear" else "RESIZE_NEAREST_NEIGHBOR"
    graph.values[node.output[0]] = graph.emit(
        kind, [value.tensor, graph.file.integers(shape[2:])], shape, LAST[4], None, value.positive,
        alignCorners=place == b"align_corners", halfPixelCenters=place == b"half_pixel")


def repeated(graph, value, shape):
    """Rows and columns several times, as a product with ones: XNNPACK runs no nearest neighbour."""
    batch, channels, height, width = value.shape
    rows, columns = shape[2] // height, shape[3] // width
    order = tuple(range(6))
    ones = graph.file.constant(np.ones((1, 1, rows, 1, columns, 1), np.float32))
    apart = graph.viewed(value, (batch, height, 1, width, 1, channels), order)
    wide = graph.emit("MUL", [apart.tensor, ones], (batch, height, rows, width, columns, channels),
                      order, None, value.positive)
    return graph.viewed(wide, shape, LAST[4])
