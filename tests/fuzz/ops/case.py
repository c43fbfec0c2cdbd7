"""case.py - one random case: an operator, a version, element types, attributes, inputs.

A generator (families in this folder) receives a Gen bound to a schema, draws what is legal there, and
calls Gen.input for each input in the schema's order; Gen.case() makes a Case of it. All draws come
from one numpy generator, so (seed, operator, index) names a case for good. Redraw starts it again.
"""
import copy
import dataclasses
import functools
import re

import numpy as np
import onnx
import onnx.defs
from onnx import TensorProto, helper, numpy_helper

from . import bounds
from .schemas import OPTIONAL, VARIADIC, every_schema

LARGE = 2048  # elements of the largest tensor drawn
TEXTS = ["", "a", "b", "ab", "Zebra", "naïve", "über", "日本", "x y", " lead", "A1-b2", "0", "-3"]

GENERATORS = {}


class Redraw(Exception):
    """These draws lead to nothing legal."""


def op(*names, domain=""):
    def register(function):
        for name in names:
            GENERATORS[domain, name] = function
        return function
    return register


def np_type(name):
    return np.dtype(helper.tensor_dtype_to_np_dtype(TensorProto.DataType.Value(name.upper())))


def type_name(dtype):
    number = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return TensorProto.DataType.Name(number).lower()


@dataclasses.dataclass
class Tolerance:
    ulps: float = 0.0      # of the expected value
    scale: object = 0.0    # absolute, in eps: one number, or one per element
    absolute: float = 0.0
    steps: int = 0
    in_float: bool = False  # double results that were computed in float


@dataclasses.dataclass
class Input:
    name: str
    value: object          # numpy array, list, dict or None
    type: str              # "tensor(float)"; "" when absent
    view: bool = True      # ours may read it through a view
    constant: object = None  # True: always an initializer, False: never


def type_proto(text, shape=None):
    match = re.fullmatch(r"(tensor|seq|optional|map)\((.*)\)", text)
    kind, body = match.groups()
    if kind == "tensor":
        return helper.make_tensor_type_proto(TensorProto.DataType.Value(body.upper()), shape)
    if kind == "seq":
        return helper.make_sequence_type_proto(type_proto(body))
    if kind == "optional":
        return helper.make_optional_type_proto(type_proto(body))
    key, value = body.split(",", 1)
    out = onnx.TypeProto()
    out.map_type.key_type = TensorProto.DataType.Value(key.upper())
    out.map_type.value_type.CopyFrom(type_proto(f"tensor({value.strip()})"))
    return out


class Gen:
    def __init__(self, rng, schema):
        self.rng, self.schema = rng, schema
        self.name, self.domain, self.version = schema.name, schema.domain, schema.since_version
        self.types, self.inputs, self.attrs = {}, [], {}
        self.opset = max(self.version, 6) if not self.domain else self.version
        self.tolerance = Tolerance()
        self.promote = True    # small types may be computed by the peer in a wider type
        self.outputs = None    # number of outputs; None: a random legal one
        self.regime = self.pick(["plain", "plain", "whole", "special"])
        self.unwanted = ()     # outputs without a name
        self.shapes_only = False
        self.empty_ok = True
        self.output_types = {}
        self.extra_opsets = {}
        self.peers = ("onnxruntime", "formula", "reference")
        self.default_opset = 21  # of the default domain beside an operator of another
        self.before = []       # nodes in front of the operator's, which read its inputs
        self.ignore = None     # places of output 0 whose value nothing defines
        self.shared = {}       # outputs that onnxruntime wants in the memory of an input
        self.formula = None    # inputs to outputs, in double: a peer of its own
        self.form_of = {}      # a peer's name: a peer_form of its own
        self.peer_form = {}    # opset, inputs, attrs in which a peer runs the same computation
        self.peer_after = lambda results: results  # and what makes its results those of the case

    # ---- draws
    def pick(self, options, weights=None):
        p = None if weights is None else np.array(weights) / sum(weights)
        return options[int(self.rng.choice(len(options), p=p))]

    def int(self, low, high):
        """low..high, both included."""
        return int(self.rng.integers(low, high + 1))

    def chance(self, p=0.5):
        return bool(self.rng.random() < p)

    def has(self, attribute):
        return attribute in self.schema.attributes

    def attr(self, name, options, p=0.7):
        """Set an attribute of the schema to one of the options, or leave it at its default."""
        if not self.has(name):
            return None
        spec = self.schema.attributes[name]
        if spec.required or self.chance(p):
            self.attrs[name] = options() if callable(options) else self.pick(options)
            return self.attrs[name]
        return helper.get_attribute_value(spec.default_value) if spec.default_value.type else None

    def allowed(self, variable):
        for constraint in self.schema.type_constraints:
            if constraint.type_param_str == variable:
                return sorted(constraint.allowed_type_strs)
        return [variable]

    def dtype(self, variable="T", only=None):
        """Bind a type variable to a tensor type; returns the numpy type."""
        if variable in self.types:
            return np_type(self.types[variable][len("tensor("):-1])
        names = [t[len("tensor("):-1] for t in self.allowed(variable) if t.startswith("tensor(")]
        if only is not None:
            names = [n for n in names if n in only]
        if not names:
            raise Redraw
        weights = [4 if n == "float" else 1 for n in names]
        name = self.pick(names, weights)
        self.types[variable] = f"tensor({name})"
        return np_type(name)

    def bind(self, variable, dtype):
        name = f"tensor({type_name(dtype)})"
        if name not in self.allowed(variable):
            raise Redraw
        self.types[variable] = name

    def dim(self, empty=None):
        options = [1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33]
        weights = [5, 6, 6, 4, 4, 2, 2, 1, 1, 1, 1]
        if self.empty_ok if empty is None else empty:
            options, weights = [0] + options, [1] + weights
        return self.pick(options, weights)

    def shape(self, rank=None, low=0, high=4, empty=None):
        rank = self.int(low, high) if rank is None else rank
        dims = [self.dim(empty) for _ in range(rank)]
        while np.prod(dims) > LARGE:
            dims[int(np.argmax(dims))] //= 2
        return tuple(dims)

    def narrower(self, shape):
        """A shape that broadcasts to `shape`."""
        dims = [1 if self.chance(0.25) else d for d in shape]
        return tuple(dims[self.int(0, len(dims)):] if self.chance(0.4) else dims)

    # ---- values
    def real(self, dtype, shape, special=True, low=None, high=None):
        """Numbers of a float type: plain normal draws, small whole numbers, or with NaN,
        infinities, signed zeros, denormals and the largest numbers among them."""
        shape = tuple(shape)
        if low is not None:
            return self.rng.uniform(low, high, shape).astype(dtype)
        if self.regime == "whole":
            return self.rng.integers(-4, 5, shape).astype(dtype)
        x = self.rng.standard_normal(shape) * self.pick([1, 1, 3, 0.1])
        if self.regime == "special":
            import ml_dtypes
            f = ml_dtypes.finfo(dtype)
            big = float(f.max)
            tame = [0.0, -0.0, float(f.smallest_subnormal), -float(f.smallest_subnormal) * 3,
                    float(f.smallest_normal), 1.0, -1.0]
            notable = tame + ([np.nan, np.inf, -np.inf, 0.5, -0.5, 1.5, 2.5] if special else [])
            if special and special != "finite sums":
                notable += [big, -big]
            if special in ("finite", "wraps"):
                notable = [v for v in notable if np.isfinite(v)]
            mask = self.rng.random(shape) < 0.3
            x = np.where(mask, self.rng.choice(notable, shape), x)
        with np.errstate(all="ignore"):
            return np.asarray(x).astype(dtype)

    def sprinkle(self, x):
        """One or two elements as NaN or infinite, in the special regime."""
        if self.regime == "special" and x.size:
            for _ in range(self.int(1, 2)):
                x.reshape(-1)[self.int(0, x.size - 1)] = self.pick([np.nan, np.inf, -np.inf])
        return x

    def few(self, low, high):
        """A size that may be 0 where onnx allows it, a batch for example."""
        return 0 if self.chance(0.06) else self.int(low, high)

    def whole(self, dtype, shape, extreme=True, low=None, high=None):
        shape = tuple(shape)
        import ml_dtypes
        info = ml_dtypes.iinfo(dtype)
        first, last = int(info.min), int(info.max)
        if low is not None:
            lo, hi = max(low, first), min(high, last)
        else:
            lo, hi = max(-20, first), min(20, last)
        x = self.rng.integers(lo, hi, shape, endpoint=True)
        if low is None and extreme and self.regime == "special":
            notable = np.array([first, first + 1, last, last - 1, 0, 1],
                               np.uint64 if first == 0 else np.int64)
            mask = self.rng.random(shape) < 0.4
            x = np.where(mask, self.rng.choice(notable, shape), x.astype(notable.dtype))
        return np.asarray(x).astype(dtype)

    def text(self, shape, texts=TEXTS):
        out = np.empty(int(np.prod(shape)), object)
        out[:] = [self.pick(texts) for _ in range(out.size)]
        return out.reshape(shape)

    def values(self, dtype, shape, special=True, **bounds):
        dtype, name = np.dtype(dtype), np.dtype(dtype).name
        if dtype == object:
            return self.text(shape)
        if dtype == bool:
            return self.rng.random(shape) < 0.5
        if dtype.kind == "c":
            return (self.rng.standard_normal(shape) + 1j * self.rng.standard_normal(shape)) \
                .astype(dtype)
        if name == "float8_e8m0fnu":
            return np.exp2(self.rng.integers(-20, 20, shape)).astype(dtype)
        if name in ("float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn"):
            return self.rng.uniform(-6, 6, shape).astype(dtype)
        if "float" in name:
            if name.startswith("float8") and self.regime == "special":
                special = "finite"
            return self.real(dtype, shape, special, **bounds)
        return self.whole(dtype, shape, special, **bounds)

    # ---- inputs
    def input(self, value, view=True, repeat=None, constant=None, type=None):
        position = min(len(self.inputs), len(self.schema.inputs) - 1)
        spec = self.schema.inputs[position]
        if value is None:
            self.inputs.append(Input("", None, ""))
            return None
        if isinstance(value, np.ndarray) or np.isscalar(value):
            value = np.asarray(value)
            type = f"tensor({type_name(value.dtype)})"
            repeat = is_real(value.dtype) if repeat is None else repeat
        else:
            view = repeat = False
        if not spec.type_str.endswith(")"):
            self.types.setdefault(spec.type_str, type)
        if repeat and view and value.ndim and value.size and self.chance(0.1):
            axis = self.int(0, value.ndim - 1)  # as an Expand in front would give it
            value = np.repeat(value.take([0], axis), value.shape[axis], axis)
        if constant is None and self.domain.startswith("ai."):
            constant = False
        self.inputs.append(Input(f"x{len(self.inputs)}", value, type, view, constant))
        return value

    def sum_tolerance(self, terms, *arrays, extra=0.0, total=None, ulps=2):
        """The bound of a sum of `terms` products of elements of the arrays (whose magnitudes add up
        to `total`, where that is known better than by their largest)."""
        scale = bounds.dot(terms, *arrays, extra=extra) if total is None else \
            bounds.sums(terms, total + extra)
        self.tolerance = Tolerance(ulps=ulps, scale=scale)

    def output_type(self, index):
        spec = self.schema.outputs[min(index, len(self.schema.outputs) - 1)]
        text = self.output_types.get(index) or self.types.get(spec.type_str, spec.type_str)
        if "(" not in text and len(self.allowed(text)) == 1:
            return self.allowed(text)[0]
        if "(" not in text:
            raise RuntimeError(f"{self.name}: output {index}: {text} is not bound")
        return text

    def case(self):
        while self.inputs and not self.inputs[-1].name:
            self.inputs.pop()
        count = self.outputs
        if count is None:
            needed = sum(o.option not in (OPTIONAL, VARIADIC) for o in self.schema.outputs)
            count = self.int(max(needed, 1), len(self.schema.outputs))
        if not self.domain and self.chance(0.4):  # a later opset with the same operator
            later = [s.since_version for s in every_schema("", self.name)
                     if s.since_version > self.version]
            self.opset = self.int(self.opset, max(self.opset, min(later, default=28) - 1))
        return Case(self, ["" if i in self.unwanted else self.output_type(i)
                           for i in range(count)])


def is_real(dtype):
    return dtype != object and dtype.name in ("float16", "float32", "float64", "bfloat16")


WIDER = {"float16": "float", "bfloat16": "float", "float8e4m3fn": "float", "float8e5m2": "float",
         "float8e4m3fnuz": "float", "float8e5m2fnuz": "float", "float8e8m0": "float",
         "float4e2m1": "float", "float6e2m3": "float", "float6e3m2": "float", "int4": "int32",
         "uint4": "int32", "int2": "int32", "uint2": "int32"}


class Case:
    def __init__(self, gen, output_types):
        self.name, self.domain, self.version = gen.name, gen.domain, gen.version
        self.opset, self.attrs, self.inputs = gen.opset, gen.attrs, gen.inputs
        self.types, self.output_types = dict(gen.types), output_types
        self.tolerance, self.peers = gen.tolerance, gen.peers
        self.can_promote, self.shapes_only = gen.promote, gen.shapes_only
        self.schema, self.extra_opsets = gen.schema, gen.extra_opsets
        self.check = None
        self.form_of = gen.form_of
        self.peer_form, self.peer_after = gen.peer_form, gen.peer_after
        self.default_opset, self.ignore = gen.default_opset, gen.ignore
        self.before, self.shared, self.formula = gen.before, gen.shared, gen.formula

    def for_peer(self, name):
        """The case as a peer gets it: the same, or an equal computation in another form."""
        form = self.form_of.get(name, self.peer_form)
        if not form:
            return self
        other = copy.copy(self)
        other.__dict__.update(form)
        return other

    def wanted(self):
        """Types of the outputs that have a name."""
        return [t for t in self.output_types if t]

    def feeds(self):
        return {i.name: i.value for i in self.inputs if i.name}

    def describe(self):
        parts = []
        for i in self.inputs:
            v = i.value
            if isinstance(v, np.ndarray):
                parts.append(f"{type_name(v.dtype)}{list(v.shape)}")
            else:
                parts.append("-" if v is None else i.type)
        attrs = {k: "..." if isinstance(v, onnx.GraphProto | onnx.TensorProto) or
                 (isinstance(v, list) and len(v) > 9) else v for k, v in self.attrs.items()}
        return f"{self.name}-{self.version} opset {self.opset} ({', '.join(parts)}) {attrs}"

    def promoted(self):
        """The same case in float (small floats) or int32 (ints below 8 bits), or None."""
        def wide(text):
            return re.sub(r"\((\w+)\)", lambda m: f"({WIDER.get(m.group(1), m.group(1))})", text)
        small = [i for i in self.inputs if i.type and wide(i.type) != i.type]
        if not self.can_promote or not small:
            return None
        for text in {i.type for i in small}:
            for variable, bound in self.types.items():
                if bound == text and wide(text) not in next(
                        (c.allowed_type_strs for c in self.schema.type_constraints
                         if c.type_param_str == variable), [wide(text)]):
                    return None
        other = copy.copy(self)
        other.inputs = [dataclasses.replace(i, type=wide(i.type) if i.type else "",
                                            value=widen(i.value)) for i in self.inputs]
        other.output_types = [wide(t) for t in self.output_types]
        other.types = {k: wide(t) for k, t in self.types.items()}
        other.can_promote = False
        return other

    def has_double(self):
        """Is this a case in double whose values float holds?"""
        return self.can_promote and any("double" in t for t in self.types.values()) and not any(
            isinstance(i.value, np.ndarray) and i.value.dtype == np.float64 and i.value.size and
            (np.nanmax(np.abs(np.where(np.isinf(i.value), 0, i.value))) > 1e30 or
             np.any((i.value != 0) & (np.abs(i.value) < 1e-30))) for i in self.inputs)

    def in_float(self):
        """A case in double as one in float, for kernels that have no other."""
        other = copy.copy(self)
        other.inputs = [dataclasses.replace(
            i, type=i.type.replace("double", "float"),
            value=i.value.astype(np.float32) if getattr(i.value, "dtype", None) == np.float64
            else i.value) for i in self.inputs]
        other.output_types = [t.replace("double", "float") for t in self.output_types]
        return other

    def model(self, opset=None, ir_version=10, rng=None, carried=False):
        """The model: plain, or with rng with views, initializers and free dimensions. carried:
        types without a numpy form come and go as wider ones, with a Cast between."""
        nodes, initializers, infos, feeds = [], [], [], []
        opset = opset or self.opset
        for i in self.inputs:
            if not i.name or i.name in [info.name for info in infos]:
                continue
            name, value = i.name, i.value
            if rng is not None and isinstance(value, np.ndarray) and i.view:
                name, value = add_view(rng, nodes, initializers, name, value,
                                       self.default_opset if self.domain else opset)
            if i.constant or (i.constant is None and rng is not None and
                              isinstance(value, np.ndarray) and rng.random() < 0.25):
                initializers.append(numpy_helper.from_array(value, name))
                continue
            if carried and i.type != carrier(i.type):
                nodes.append(cast(name + "_wide", name, i.type))
                infos.append(helper.make_value_info(name + "_wide", type_proto(carrier(i.type))))
                feeds.append((name + "_wide", widen(value)))
                continue
            shape = list(value.shape) if isinstance(value, np.ndarray) else None
            if rng is not None and shape is not None and rng.random() < 0.3:
                shape = [None if rng.random() < 0.6 else d for d in shape]
            infos.append(helper.make_value_info(name, type_proto(i.type, shape)))
            feeds.append((name, value))
        nodes += self.before
        names = [f"y{k}" if t else "" for k, t in enumerate(self.output_types)]
        types = [carrier(t) if carried else t for t in self.output_types]
        nodes.append(helper.make_node(self.name, [i.name for i in self.inputs], names,
                                      domain=self.domain))
        nodes[-1].attribute.extend(helper.make_attribute(
            k, v, attr_type=onnx.AttributeProto.INTS if v == [] else None)
            for k, v in sorted(self.attrs.items()))
        nodes += [cast(n, n + "_wide", t) for n, t, own in
                  zip(names, types, self.output_types, strict=True) if t != own]
        outputs = [helper.make_value_info(n if t == own else n + "_wide", type_proto(t))
                   for n, t, own in zip(names, types, self.output_types, strict=True) if t]
        graph = helper.make_graph(nodes, "case", infos, outputs, initializers)
        sets = [helper.make_opsetid("", self.default_opset if self.domain else opset)]
        if self.domain:
            sets.append(helper.make_opsetid(self.domain, opset))
        sets += [helper.make_opsetid(d, v) for d, v in self.extra_opsets.items()]
        return helper.make_model(graph, opset_imports=sets, ir_version=ir_version), dict(feeds)


def carrier(text):
    """The type that a tensor of a small type travels in to onnxruntime."""
    name = text[len("tensor("):-1]
    return f"tensor({WIDER[name]})" if text.startswith("tensor(") and name in WIDER and \
        name != "float16" else text


def cast(source, target, text):
    return helper.make_node("Cast", [source], [target],
                            to=TensorProto.DataType.Value(text[len("tensor("):-1].upper()))


def widen(value):
    if isinstance(value, list):
        return [widen(v) for v in value]
    if isinstance(value, np.ndarray) and value.dtype != object:
        wider = WIDER.get(type_name(value.dtype))
        return value.astype(np_type(wider)) if wider else value
    return value


def in_double(value, text):
    double = isinstance(value, np.ndarray) and text == "tensor(double)"
    return value.astype(np.float64) if double else value


def narrow(value, text):
    """A peer's wide result in the type that the operator promises."""
    name = re.search(r"\((\w+)\)+$", text)
    if isinstance(value, list):
        return [narrow(v, text) for v in value]
    if isinstance(value, np.ndarray) and name and name.group(1) in WIDER:
        with np.errstate(all="ignore"):
            return value.astype(np_type(name.group(1)))
    return value


@functools.cache
def viewable(name, opset, dtype):
    """Does this operator take the type at this opset?"""
    types = onnx.defs.get_schema(name, opset).type_constraints[0].allowed_type_strs
    return f"tensor({type_name(dtype)})" in types


def add_view(rng, nodes, initializers, name, value, opset):
    """Let the node read `value` as a part of a larger tensor, transposed, or from one copied
    along an axis. Returns the name and value of the tensor it is taken from."""
    if value.ndim == 0 or rng.random() < 0.5:
        return name, value
    axis = int(rng.integers(value.ndim))
    if rng.random() < 0.5 and viewable("Transpose", opset, value.dtype):
        order = rng.permutation(value.ndim)
        nodes.append(helper.make_node("Transpose", [name + "_base"], [name],
                                      perm=[int(k) for k in order]))
        return name + "_base", np.ascontiguousarray(value.transpose(np.argsort(order)))
    if opset < 10 or not viewable("Slice", opset, value.dtype):
        return name, value
    if value.shape[axis] > 1 and np.all(value.take([0], axis) == value) and rng.random() < 0.5:
        initializers.append(numpy_helper.from_array(np.array(value.shape, np.int64), name + "to"))
        nodes.append(helper.make_node("Expand", [name + "_base", name + "to"], [name]))
        return name + "_base", value.take([0], axis)
    step = int(rng.choice([2, -1, -2, 1]))
    many, width = value.shape[axis], abs(step)
    shape = list(value.shape)
    shape[axis] = many * width + 2
    base = np.zeros(shape, value.dtype) if value.dtype != object else np.full(shape, "?", object)
    if many == 0:
        start, end = 1, 1
    elif step > 0:
        start, end = 1, 1 + (many - 1) * step + 1
    else:
        start, end = 1 + (many - 1) * width, 0
    where = [slice(None)] * value.ndim
    where[axis] = slice(start, end, step)
    base[tuple(where)] = value
    parts = [name + "_base"]
    for label, number in (("starts", start), ("ends", end), ("axes", axis), ("steps", step)):
        initializers.append(numpy_helper.from_array(np.array([number], np.int64), name + label))
        parts.append(name + label)
    nodes.append(helper.make_node("Slice", parts, [name]))
    return name + "_base", base
