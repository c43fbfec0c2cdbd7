"""The graph whose operators get a form: values that are numbers or codes, axes in any order.

A tensor of the file may hold an ONNX value with its axes in another order (channels last, mostly):
Value.order[k] is the value's axis that is axis k of the tensor. So a Transpose changes the order
and nothing else; elements move only where an operator or a Reshape asks for an order of its own.

Between DequantizeLinear and QuantizeLinear an operator works on codes: its input is the tensor of
codes, its output has the units of the QuantizeLinear that follows. float16 becomes float32: XNNPACK
computes in no other type on x86, and a file with weights of float16 is unpacked when it is loaded.
"""
import collections

import numpy as np
import onnx
from onnx import helper

from peers import forms
from peers.tflite_file import File, Units, schema

Value = collections.namedtuple("Value", "tensor shape order units positive")
ACTIVATIONS = schema.ActivationFunctionType
LAST = {4: (0, 2, 3, 1)}                # channels last, by rank
MOVES = {"Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze", "Identity", "MaxPool"}
BYTES = (np.dtype(np.int8), np.dtype(np.uint8))

# Operators on codes: the operator on numbers, how many operands (code, scale, zero) it has, and at
# which inputs its bias and the units of its result are.
ON_CODES = {"QLinearConv": ("Conv", 2, 8, 6), "QLinearMatMul": ("MatMul", 2, None, 6),
            "QLinearAdd": ("Add", 2, None, 6), "QLinearMul": ("Mul", 2, None, 6),
            "QGemm": ("Gemm", 2, 6, 7), "QLinearSigmoid": ("Sigmoid", 1, None, 3),
            "QLinearAveragePool": ("AveragePool", 1, None, 3),
            "QLinearGlobalAveragePool": ("GlobalAveragePool", 1, None, 3)}


FORMS = {}                              # by ONNX operator: function(graph, node)


def form(*kinds):
    def add(function):
        FORMS.update(dict.fromkeys(kinds, function))
        return function
    return add


class Coded(collections.namedtuple("Coded", "codes units")):
    """A constant of codes; what arrays can do that forms ask for."""

    @property
    def shape(self):
        return self.codes.shape

    def numbers(self):
        shape = [1] * self.codes.ndim
        if len(self.units.scale) > 1:
            shape[self.units.axis] = -1
        zero = np.reshape(self.units.zero, shape).astype(np.int32)
        return (self.codes.astype(np.int32) - zero) * np.reshape(self.units.scale, shape)

    def transpose(self, axes):
        axis = list(axes).index(self.units.axis) if len(self.units.scale) > 1 else 0
        return Coded(self.codes.transpose(axes), self.units._replace(axis=axis))

    def reshape(self, shape):
        return Coded(self.codes.reshape(shape), self.units)


def attributes(node):
    return {a.name: helper.get_attribute_value(a) for a in node.attribute}


def weight_axis(node):
    """The axis along which a QLinear operator's weights have units of their own."""
    return 0 if node.op_type == "QLinearConv" or attributes(node).get("transB") else 1


def on_numbers(node):
    """An operator on codes as DequantizeLinear, the operator on numbers, QuantizeLinear."""
    kind, operands, bias, result = ON_CODES[node.op_type]
    made, names, out = [], [], node.output[0]
    for k in range(operands):
        names.append("%s/operand%d" % (out, k))
        made.append(helper.make_node("DequantizeLinear", node.input[3 * k:3 * k + 3], names[-1:],
                                     axis=weight_axis(node)))
    if bias is not None and len(node.input) > bias and node.input[bias]:
        names.append(node.input[bias])
    coded = len(node.input) > result
    middle = helper.make_node(kind, names, [out + "/numbers" if coded else out])
    middle.attribute.extend(node.attribute)
    made.append(middle)
    if coded:
        made.append(helper.make_node("QuantizeLinear", [out + "/numbers",
                                                        *node.input[result:result + 2]], [out]))
    return made


def groups(before, after):
    """Axes of one shape beside those of another that hold the same elements; ones are left out."""
    found = []
    a = [k for k, d in enumerate(before) if d != 1]
    b = [k for k, d in enumerate(after) if d != 1]
    while a or b:
        left, right = [a.pop(0)], [b.pop(0)]
        while True:
            less = np.prod([before[k] for k in left]) - np.prod([after[k] for k in right])
            if less == 0:
                break
            (left if less < 0 else right).append((a if less < 0 else b).pop(0))
        found.append((left, right))
    return found


def spine(order, shape):
    """The axes that have more than one element: they alone say where elements lie."""
    return [a for a in order if shape[a] != 1]


def complete(sequence, shape):
    """An order with these axes in this sequence; axes of one element go where it is usual."""
    rank = len(shape)
    for order in (LAST.get(rank), tuple(range(rank))):
        if order and spine(order, shape) == sequence:
            return order
    return tuple([a for a in range(rank) if a not in sequence] + sequence)


def clip_bounds(graph, node):
    """(lowest, highest), None for a bound that isn't there; Absent where it is computed."""
    bounds = []
    for k in (1, 2):
        name = node.input[k] if len(node.input) > k else ""
        bounds.append(float(graph.numbers(name).item()) if name else None)
    return bounds


class Graph(forms.Net):
    """Constants, values by name, and the file they are written to."""

    def __init__(self, folder):
        super().__init__(folder)
        self.file, self.values, self.coded, self.moves = File(), {}, {}, {}
        self.done = set()       # of nodes: they are part of an operator before them
        self.constants = {name: np.float32(array) if array.dtype == np.float16 else array
                          for name, array in self.constants.items()}
        self.nodes = [m for n in self.nodes
                      for m in (on_numbers(n) if n.op_type in ON_CODES else [n])]
        self.users = {}
        for node in self.nodes:
            for name in node.input:
                self.users.setdefault(name, []).append(node)
        self.results = set(self.output_names())
        self.byte = np.dtype(np.uint8 if self.needs_unsigned() else np.int8)

    # Codes

    def needs_unsigned(self):
        """XNNPACK has weights of int8 with zero 0, or weights of uint8 with any zero."""
        for node in self.nodes:
            if node.op_type == "DequantizeLinear" and self.is_weight(node):
                codes, zero = self.constants[node.input[0]], self.constants.get(node.input[2])
                if codes.dtype == np.uint8 and (zero is None or np.any(zero != 128)):
                    return True
        return False

    def is_weight(self, node):
        users = self.users.get(node.output[0], [])
        return (node.input[0] in self.constants and len(node.input) > 2
                and any(u.op_type in ("Conv", "Gemm", "MatMul") for u in users))

    def shift(self, dtype):
        """What is added to codes of that type to be codes of the file's."""
        if dtype not in BYTES:
            raise forms.Absent("codes of %s" % dtype)
        return (int(self.byte == np.uint8) - int(dtype == np.uint8)) * 128

    def units(self, node):
        """The units that a QuantizeLinear or DequantizeLinear names."""
        scale = self.constants.get(node.input[1])
        zero = self.constants.get(node.input[2]) if len(node.input) > 2 else np.uint8(0)
        if scale is None or zero is None:
            raise forms.Absent("%s of computed units" % node.op_type)
        axis = attributes(node).get("axis", 1) if scale.size > 1 else 0
        zeros = zero.astype(np.int64)
        if zero.dtype in BYTES:
            zeros = zeros + self.shift(zero.dtype)
        return Units(np.float32(scale).reshape(-1), zeros.reshape(-1), axis)

    def coded_constant(self, node):
        codes, units = self.constants[node.input[0]], self.units(node)
        if codes.dtype in BYTES:
            codes = (codes.astype(np.int16) + self.shift(codes.dtype)).astype(self.byte)
        return Coded(codes, units)

    def units_ahead(self, name):
        """The units of the QuantizeLinear that alone reads the value, if with a move between."""
        user = self.only_user(name)
        while user is not None and (user.op_type in MOVES or self.activation(user)):
            user = self.only_user(user.output[0])
        return self.units(user) if user is not None and user.op_type == "QuantizeLinear" else None

    def units_of_input(self, name):
        """The units that the first DequantizeLinear gives to codes that the graph is handed."""
        for user in self.users.get(name, []):
            if user.op_type == "DequantizeLinear":
                return self.units(user)
            if user.op_type in MOVES:
                return self.units_of_input(user.output[0])
        raise forms.Absent("codes that nothing makes numbers")

    # What surrounds a value

    def only_user(self, name):
        users = self.users.get(name, [])
        return users[0] if len(users) == 1 and name not in self.results else None

    def activation(self, node):
        """The activation that the node is, or NONE where it is none that operators take in."""
        if node.op_type == "Relu":
            return ACTIVATIONS.RELU
        if node.op_type != "Clip" or any(n and n not in self.constants for n in node.input[1:]):
            return ACTIVATIONS.NONE
        return {(0.0, 6.0): ACTIVATIONS.RELU6, (0.0, None): ACTIVATIONS.RELU,
                (-1.0, 1.0): ACTIVATIONS.RELU_N1_TO_1}.get(tuple(clip_bounds(self, node)),
                                                            ACTIVATIONS.NONE)

    def take_activation(self, name):
        """The activation after the value, now part of its operator, and what the value is named."""
        user = self.only_user(name)
        kind = self.activation(user) if user is not None else ACTIVATIONS.NONE
        if kind:
            self.done.add(id(user))
            name = user.output[0]
        return name, kind

    def on_codes(self, node, *names):
        """Whether these operands are codes and a QuantizeLinear makes codes of the result."""
        def has_units(name):
            return name in self.coded if self.is_constant(name) else bool(self.value(name).units)
        return all(map(has_units, names)) and self.units_ahead(node.output[0]) is not None

    # Constants

    def is_constant(self, name):
        return name in self.constants or name in self.coded

    def numbers(self, name):
        if name in self.coded:
            return np.float32(self.coded[name].numbers())
        if name not in self.constants:
            raise forms.Absent("a computed '%s' where a constant is asked for" % name)
        return self.constants[name]

    def write_constant(self, array):
        """The tensor of an array of numbers or of a Coded."""
        if isinstance(array, Coded):
            return self.file.constant(array.codes, array.units)
        if array.dtype in (np.float64, np.float16, np.int64, np.bool_):
            raise forms.Absent("constants of %s" % array.dtype)
        return self.file.constant(array)

    # Values

    def emit(self, kind, inputs, shape, order, units=None, positive=False, dtype=np.float32,
             **settings):
        """An operator's result; `inputs` are tensors. Positive: none of its numbers is below 0."""
        dtype = dtype if units is None else self.byte
        positive = positive or units is not None and units.zero[0] == np.iinfo(self.byte).min
        tensor = self.file.tensor([shape[a] for a in order], dtype, units)
        self.file.add(kind, inputs, [tensor], **settings)
        return Value(tensor, tuple(shape), tuple(order), units, positive)

    def finish(self, name, kind, inputs, shape, order, coded=False, **settings):
        """The operator that makes `name` and takes in the activation after it; its last name."""
        last, activation = self.take_activation(name)
        units = self.units_ahead(last) if coded else None
        self.values[last] = self.emit(
            kind, inputs, shape, order, units, activation in (ACTIVATIONS.RELU, ACTIVATIONS.RELU6),
            fusedActivationFunction=activation, **settings)
        return last

    def value(self, name):
        if name not in self.values and self.is_constant(name):
            array = self.coded.get(name, self.constants.get(name))
            units = array.units if isinstance(array, Coded) else None
            self.values[name] = Value(self.write_constant(array), array.shape,
                                      tuple(range(len(array.shape))), units, False)
        return self.values[name]

    def as_numbers(self, value):
        if value.units is None:
            return value
        key = value.tensor, "numbers"
        if key not in self.moves:
            self.moves[key] = self.emit("DEQUANTIZE", [value.tensor], value.shape, value.order)
        return self.moves[key]._replace(shape=value.shape, order=value.order)

    def in_units(self, value, units):
        if value.units is not None and same_units(value.units, units):
            return value
        return self.emit("QUANTIZE", [value.tensor], value.shape, value.order, units)

    def dims(self, value):
        return [value.shape[a] for a in value.order]

    def viewed(self, value, shape, order):
        """The same elements in the same places under another shape and order."""
        dims = [shape[a] for a in order]
        if dims == self.dims(value):
            return value._replace(shape=tuple(shape), order=tuple(order))
        return self.emit("RESHAPE", [value.tensor, self.file.integers(dims)], shape, order,
                         value.units, value.positive, newShape=dims)

    def moved(self, value, order):
        """The value in a tensor of that order."""
        if spine(order, value.shape) == spine(value.order, value.shape):
            return self.viewed(value, value.shape, order)
        key = value.tensor, value.order, tuple(order)
        if key not in self.moves:
            places = [value.order.index(a) for a in order]
            self.moves[key] = self.emit("TRANSPOSE", [value.tensor, self.file.integers(places)],
                                        value.shape, order, value.units, value.positive)
        return self.moves[key]._replace(shape=value.shape)

    def channels_last(self, name):
        value = self.value(name)
        if len(value.shape) != 4:
            raise forms.Absent("rank %d where images are asked for" % len(value.shape))
        return self.moved(value, LAST[4])

    def reshaped(self, value, shape):
        """Elements move only where axes to be joined don't lie beside each other."""
        pairs = sorted(groups(value.shape, shape),
                       key=lambda pair: min(value.order.index(a) for a in pair[0]))
        before = [a for left, _ in pairs for a in left]
        if before != spine(value.order, value.shape):
            value = self.moved(value, complete(before, value.shape))
        return self.viewed(value, shape, complete([b for _, right in pairs for b in right], shape))


def same_units(a, b):
    return np.array_equal(a.scale, b.scale) and np.array_equal(a.zero, b.zero)
