"""Structure-aware mutations of ONNX models, for check_models.py.

A kind is a verb and an object, "rename node". Objects are places of a model, verbs what happens to one field
there:

  drop      the field, or one element of a list, is taken away
  double    an element comes twice, or a field that was not set is set beside the others
  retype    an enum of types gets another member, a value moves to the field of another type, a type becomes
            one of another kind; where there is no such thing the field comes in another form of the wire
  rename    a text becomes empty, new, that of another place, another case, or bytes that are not UTF-8
  renumber  a number becomes 0, negative, its neighbour, huge; a list is reordered, a blob gets another length

An object "trial" is any of the common ones in a model of an operator that ONNX had on trial or took back, and
that runtimes run still.

What bases lack is made first from what they have: a recorded input becomes an initializer, an initializer sparse
or external, a node a function, inferred types value infos. All is determined by (seed, kind, number).
"""
import pathlib
import random

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, shape_inference

VERBS = ("drop", "double", "retype", "rename", "renumber")
OBJECTS = ("header", "graph", "node", "attribute", "learned", "tensor", "value", "body", "function",
           "sparse", "external", "note", "trial")
TRIAL_SITES = ("header", "graph", "node", "attribute", "tensor", "value")
KINDS = [f"{verb} {object}" for object in OBJECTS for verb in VERBS]

STAND_IN = "~not UTF-8~"        # protobuf takes no text that isn't; the bytes are put in afterwards
NOT_UTF8 = b"~\xc3\x28\xff UTF-8~"
BULK = {"float_data", "int32_data", "int64_data", "double_data", "uint64_data", "raw_data", "floats",
        "ints", "strings", "string_data"}
NOTES = {"metadata_props", "quantization_annotation", "doc_string", "training_info", "denotation",
         "configuration", "device_configurations", "StringStringEntryProto", "TensorAnnotation"}
ENUMS = {("TensorProto", "data_type"): range(0, 30), ("Tensor", "elem_type"): range(0, 30),
         ("SparseTensor", "elem_type"): range(0, 30), ("Map", "key_type"): range(0, 30),
         ("AttributeProto", "type"): range(0, 17), ("TensorProto", "data_location"): range(0, 3)}
DTYPE_FIELDS = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data", "raw_data")


# ---- places

class Site:
    """One field (or one element of it) of a message of a model."""

    def __init__(self, message, field, index, object):
        self.message, self.field, self.index, self.object = message, field, index, object

    def group(self):
        return self.object, self.message.DESCRIPTOR.name, self.field.name

    def value(self):
        value = getattr(self.message, self.field.name)
        return value if self.index is None else value[self.index]


def is_message(field):
    return field.type == field.TYPE_MESSAGE


OWN_OBJECT = {"ModelProto": "header", "OperatorSetIdProto": "header", "GraphProto": "graph",
              "NodeProto": "node", "AttributeProto": "attribute", "TensorProto": "tensor",
              "SparseTensorProto": "sparse", "FunctionProto": "function"}


def object_of(message, field, around, inside):
    """Where a field of this message belongs; `inside`: what stands around it, outermost first."""
    name = message.DESCRIPTOR.name
    if field.name in NOTES or name in NOTES and "external" not in inside:
        return "note"
    for outer in ("function", "body", "external", "sparse", "learned"):
        if outer in inside:
            return outer
    return OWN_OBJECT.get(name, around)


def inner(message, field, value, inside):
    """What `inside` gains when the walk steps into this field."""
    if field.name in ("g", "graphs"):
        return inside | {"body"}
    if field.name == "functions":
        return inside | {"function"}
    if field.name.startswith("sparse"):
        return inside | {"sparse"}
    if value.DESCRIPTOR.name == "TensorProto" and value.data_location == TensorProto.EXTERNAL:
        return inside | {"external"}
    if value.DESCRIPTOR.name == "AttributeProto" and getattr(message, "domain", "") == "ai.onnx.ml":
        return inside | {"learned"}
    return inside


def sites_of(message, around="header", inside=frozenset()):
    """Every set field of a message and of the messages in it, in a fixed order."""
    for field, value in message.ListFields():
        listed = field.is_repeated if hasattr(field, "is_repeated") else field.label == 3
        object = object_of(message, field, around, inside)
        if listed and not is_message(field) and field.name in BULK:
            yield Site(message, field, None, object)
            continue
        for index, element in enumerate(value) if listed else [(None, value)]:
            yield Site(message, field, index, object)
            if is_message(field):
                step = OWN_OBJECT.get(element.DESCRIPTOR.name)
                if element.DESCRIPTOR.name == "ValueInfoProto":
                    step = "value"
                yield from sites_of(element, step or object, inner(message, field, element, inside))


# ---- verbs: each changes the model at a site, or returns False

def varint(number):
    made, number = b"", number & (1 << 64) - 1
    while number > 127:
        made, number = made + bytes([number & 0x7f | 0x80]), number >> 7
    return made + bytes([number])


def replace(site, value):
    listed = getattr(site.message, site.field.name)
    enum = site.field.enum_type
    if enum is not None and value not in enum.values_by_number:
        site.message.ClearField(site.field.name)
        site.message.MergeFromString(varint(site.field.number << 3) + varint(value))
    elif site.index is None:
        setattr(site.message, site.field.name, value)
    else:
        listed[site.index] = value
    return True


def drop(rng, site, model):
    if site.index is not None:
        del getattr(site.message, site.field.name)[site.index]
    elif site.field.name in BULK and site.value() and rng.random() < 0.5:
        value = site.value()
        if isinstance(value, bytes):
            return replace(site, value[:-1])
        del value[rng.randrange(len(value))]
    else:
        site.message.ClearField(site.field.name)
    return True


def another_field(rng, message):
    """Sets a field that was not set."""
    free = [f for f in message.DESCRIPTOR.fields if f not in {g for g, _ in message.ListFields()}]
    if not free:
        return False
    field = rng.choice(free)
    listed = field.is_repeated if hasattr(field, "is_repeated") else field.label == 3
    value = getattr(message, field.name)
    if is_message(field):
        value.add() if listed else value.SetInParent()
        return True
    made = {field.TYPE_STRING: "x", field.TYPE_BYTES: b"\0\0\0\0"}.get(field.type, 1)
    if field.type in (field.TYPE_FLOAT, field.TYPE_DOUBLE):
        made = 1.0
    value.append(made) if listed else setattr(message, field.name, made)
    return True


def double(rng, site, model):
    if site.index is None:
        return another_field(rng, site.message)
    listed, value = getattr(site.message, site.field.name), site.value()
    if rng.random() < 0.25:
        return another_field(rng, value if is_message(site.field) else site.message)
    if is_message(site.field):
        copy = type(value)()
        copy.CopyFrom(value)
        listed.insert(rng.randrange(len(listed) + 1), copy)
    else:
        listed.insert(rng.randrange(len(listed) + 1), value)
    return True


def other_type(rng, type):
    """A TypeProto becomes one of another kind."""
    old = onnx.TypeProto()
    old.CopyFrom(type)
    type.Clear()
    kind = rng.choice(("sequence_type", "optional_type", "map_type", "sparse_tensor_type",
                       "opaque_type", "tensor_type"))
    made = getattr(type, kind)
    made.SetInParent()
    if kind in ("sequence_type", "optional_type"):
        made.elem_type.CopyFrom(old)
    elif kind == "map_type":
        made.key_type = TensorProto.INT64
        made.value_type.CopyFrom(old)
    elif kind in ("sparse_tensor_type", "tensor_type"):
        made.elem_type = old.tensor_type.elem_type or TensorProto.FLOAT
    return True


def move_value(rng, site):
    """The value of an attribute or tensor goes to a field of another type; the type stays."""
    message = site.message
    names = DTYPE_FIELDS if message.DESCRIPTOR.name == "TensorProto" else \
        ("f", "i", "s", "floats", "ints", "strings")
    to = rng.choice([n for n in names if n != site.field.name])
    value = site.value()
    first = value[0] if isinstance(value, (list, tuple)) or hasattr(value, "__len__") and len(value) \
        and not isinstance(value, (bytes, str)) else value
    number = first if isinstance(first, (int, float)) and abs(first) < 2**31 else 1
    number = int(number) if number == number else 1
    message.ClearField(site.field.name)
    count = max(1, len(value)) if hasattr(value, "__len__") else 1
    if to in ("s", "raw_data"):
        setattr(message, to, bytes([number & 0x7f]) * min(count * 4, 4096))
    elif to == "strings":
        message.strings.extend([b"x"] * min(count, 4096))
    elif to in ("f", "i"):
        setattr(message, to, number)
    else:
        getattr(message, to).extend([abs(number)] * min(count, 4096))
    if message.DESCRIPTOR.name == "AttributeProto" and rng.random() < 0.5:
        message.type = {"f": 1, "i": 2, "s": 3, "floats": 6, "ints": 7, "strings": 8}[to]
    return True


def other_wire(rng, site):
    """The field comes with another wire type: varints for texts and messages, texts for numbers."""
    if site.index is not None:
        del getattr(site.message, site.field.name)[site.index]
    else:
        site.message.ClearField(site.field.name)
    text = site.field.type in (site.field.TYPE_STRING, site.field.TYPE_BYTES, site.field.TYPE_MESSAGE)
    tag, value = site.field.number << 3 | (0 if text else 2), b"\1" if text else b"\1x"
    site.message.MergeFromString(varint(tag) + value)
    return True


def retype(rng, site, model):
    name = site.message.DESCRIPTOR.name
    values = ENUMS.get((name, site.field.name))
    if values:
        return replace(site, rng.choice([v for v in values if v != site.value()]))
    if is_message(site.field) and site.value().DESCRIPTOR.name == "TypeProto":
        return other_type(rng, site.value())
    moves = DTYPE_FIELDS if name == "TensorProto" else ("f", "i", "s", "floats", "ints", "strings")
    if name in ("TensorProto", "AttributeProto") and site.field.name in moves:
        return move_value(rng, site)
    if name == "Dimension":
        number = site.field.name == "dim_value"
        site.message.dim_param = "d" if number else site.message.dim_param
        if not number:
            site.message.dim_value = 3
        return True
    return other_wire(rng, site)


def texts_of(model):
    graph = model.graph
    names = [n.op_type for n in graph.node] + [v for n in graph.node for v in list(n.input) + list(n.output)]
    names += [a.name for n in graph.node for a in n.attribute] + [i.name for i in graph.initializer]
    names += [o.domain for o in model.opset_import] + [f.name for f in model.functions]
    return names or ["x"]


def new_text(rng, old, model):
    return rng.choice(("", "renamed", STAND_IN, old + "_", old.swapcase(), old[:-1], "a/b c",
                       rng.choice(texts_of(model)), rng.choice(texts_of(model))))


def rename(rng, site, model):
    field, value = site.field, site.value()
    if field.type == field.TYPE_STRING:
        return replace(site, new_text(rng, value, model))
    if field.name in ("s", "strings", "string_data") and len(value):
        if field.name == "s":
            return replace(site, new_text(rng, value.decode("utf-8", "replace"), model).encode())
        at = rng.randrange(len(value))
        value[at] = new_text(rng, value[at].decode("utf-8", "replace"), model).encode()
        return True
    return False


def new_number(rng, old):
    if isinstance(old, float):
        return rng.choice((0.0, -old, float("nan"), float("inf"), -1e30, old + 1, 1e-30))
    return rng.choice((0, -1, old + 1, old - 1, -old, -2, 5, 1000, 2**31 - 1, -2**31))


def reorder(rng, site):
    listed = getattr(site.message, site.field.name)
    if len(listed) < 2:
        return False
    order = list(listed)
    if is_message(site.field):
        order = [type(e).FromString(e.SerializeToString()) for e in order]
    at = rng.randrange(len(order) - 1)
    if rng.random() < 0.5:
        order.reverse()
    else:
        order[at], order[at + 1] = order[at + 1], order[at]
    del listed[:]
    listed.extend(order)
    return True


def renumber(rng, site, model):
    field, value = site.field, site.value()
    if is_message(field) and site.index is not None:
        return reorder(rng, site)
    if is_message(field):
        return False
    if field.type == field.TYPE_STRING:
        if site.index is not None:
            return reorder(rng, site)
        old = int(value) if value.isdigit() else 0
        return field.name == "value" and replace(site, str(new_number(rng, old)))
    if field.name in BULK or isinstance(value, bytes):
        if not len(value):
            return False
        if isinstance(value, bytes):
            return replace(site, rng.choice((value + b"\0", value[:len(value) // 2], value * 2,
                                             bytes(len(value)), b"\xff" * len(value))))
        if field.name in ("strings", "string_data"):
            return reorder(rng, site)
        at = rng.randrange(len(value))
        choice = rng.random()
        if choice < 0.2:
            value.append(value[at])
        elif choice < 0.3:
            del value[len(value) // 2:]
        else:
            value[at] = bounded(field, new_number(rng, value[at]))
        return True
    return site.value() is not None and replace(site, bounded(field, new_number(rng, value)))


def bounded(field, number):
    if field.type == field.TYPE_UINT64:
        return max(0, number)
    if field.type in (field.TYPE_INT32, field.TYPE_ENUM):
        return max(-2**31, min(2**31 - 1, number))
    return number


VERB = {"drop": drop, "double": double, "retype": retype, "rename": rename, "renumber": renumber}


# ---- what a base lacks

def recorded(base):
    """Input name to TensorProto, of the first recorded data set of a node test."""
    found, folder = {}, base.parent / "test_data_set_0"
    for path in sorted(folder.glob("input_*.pb")) if folder.is_dir() else []:
        tensor = TensorProto()
        try:
            tensor.ParseFromString(path.read_bytes())
        except Exception:       # a sequence or an optional
            continue
        found[int(path.stem.split("_")[1])] = tensor
    return found


def add_constants(rng, model, base):
    """Some recorded inputs become initializers."""
    tensors = recorded(base)
    graph = model.graph
    kept = []
    for i, value in enumerate(graph.input):
        tensor = tensors.get(i)
        fits = tensor is not None and value.type.HasField("tensor_type") and \
            tensor.data_type == value.type.tensor_type.elem_type and tensor.ByteSize() < 1 << 16
        if fits and rng.random() < 0.6:
            tensor.name = value.name
            graph.initializer.append(tensor)
            if rng.random() < 0.7 and model.ir_version > 3:
                continue
        kept.append(onnx.ValueInfoProto.FromString(value.SerializeToString()))
    del graph.input[:]
    graph.input.extend(kept)


def add_infos(model):
    if model.ByteSize() < 1 << 16 and not model.graph.value_info:
        try:
            model.CopyFrom(shape_inference.infer_shapes(model))
        except Exception:
            pass


def add_function(rng, model):
    nodes = [n for n in model.graph.node if n.domain in ("", "ai.onnx") and
             not any(a.HasField("g") for a in n.attribute)]
    if not nodes:
        return
    node = rng.choice(nodes)
    inside = onnx.NodeProto()
    inside.CopyFrom(node)
    function = onnx.FunctionProto(name="Local", domain="local")
    function.input.extend(dict.fromkeys(i for i in node.input if i))
    function.output.extend(o for o in node.output if o)
    function.opset_import.extend(model.opset_import)
    del node.attribute[:]
    for attribute in inside.attribute:
        if attribute.type in (1, 2, 3, 6, 7, 8) and rng.random() < 0.5:
            outer = node.attribute.add()
            outer.CopyFrom(attribute)
            if rng.random() < 0.5:
                function.attribute.append(attribute.name)
            else:
                function.attribute_proto.add().CopyFrom(attribute)
            name, type = attribute.name, attribute.type
            attribute.Clear()
            attribute.name, attribute.type, attribute.ref_attr_name = name, type, name
    function.node.append(inside)
    node.op_type, node.domain = "Local", "local"
    inputs, outputs = list(function.input), list(function.output)
    del node.input[:], node.output[:]
    node.input.extend(inputs)
    node.output.extend(outputs)
    model.functions.append(function)
    model.opset_import.append(helper.make_opsetid("local", 1))
    model.ir_version = max(model.ir_version, 10)


def numeric(tensor):
    return tensor.data_type in (1, 2, 3, 4, 5, 6, 7, 11, 12, 13) and \
        tensor.data_location != TensorProto.EXTERNAL and 0 < np.prod(tensor.dims or [1]) < 1 << 14


def add_sparse(rng, model):
    dense = [t for t in model.graph.initializer if numeric(t) and len(t.dims) > 0]
    opset = max([o.version for o in model.opset_import if o.domain in ("", "ai.onnx")], default=0)
    if not dense or opset < 11:
        return
    tensor = rng.choice(dense)
    array = numpy_helper.to_array(tensor)
    flat = array.reshape(-1)
    at = np.flatnonzero(flat)
    indices = at if rng.random() < 0.5 else np.stack(np.unravel_index(at, array.shape), axis=1)
    if rng.random() < 0.5:
        node = helper.make_node("Constant", [], [tensor.name])
        made = node.attribute.add(name="sparse_value", type=onnx.AttributeProto.SPARSE_TENSOR).sparse_tensor
        model.graph.node.insert(0, node)
    else:
        made = model.graph.sparse_initializer.add()
    made.values.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(flat[at]), tensor.name))
    made.indices.CopyFrom(numpy_helper.from_array(indices.astype(np.int64), tensor.name + "_indices"))
    made.dims.extend(tensor.dims)
    index = [t.name for t in model.graph.initializer].index(tensor.name)
    del model.graph.initializer[index]
    del_input(model, tensor.name)
    model.ir_version = max(model.ir_version, 5)


def del_input(model, name):
    for i, value in enumerate(model.graph.input):
        if value.name == name:
            del model.graph.input[i]
            return


def add_external(rng, model, file_name):
    """Bytes of the data file that some initializers now lie in."""
    blob = b""
    for tensor in model.graph.initializer:
        # Integers say shapes, now and then: the peers don't read those from files.
        if not numeric(tensor) or rng.random() < (0.95 if tensor.data_type in (6, 7) else 0.2):
            continue
        raw = numpy_helper.to_array(tensor).tobytes()
        name, dims, dtype = tensor.name, list(tensor.dims), tensor.data_type
        tensor.Clear()
        tensor.name, tensor.data_type = name, dtype
        tensor.dims.extend(dims)
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", file_name), ("offset", len(blob)), ("length", len(raw))):
            entry = tensor.external_data.add()
            entry.key, entry.value = key, str(value)
        blob += raw + bytes(-len(raw) % 64)
    return blob


def add_notes(rng, model):
    names = [i.name for i in model.graph.initializer] + [i.name for i in model.graph.input]
    graph = model.graph
    for owner in [model, graph] + list(graph.node)[:2] + list(graph.input)[:1] + list(graph.initializer)[:1]:
        entry = owner.metadata_props.add()
        entry.key, entry.value = "author", "somebody"
    model.doc_string = graph.doc_string = "notes"
    if names:
        note = graph.quantization_annotation.add()
        note.tensor_name = rng.choice(names)
        for key in ("SCALE_TENSOR", "ZERO_POINT_TENSOR"):
            entry = note.quant_parameter_tensor_names.add()
            entry.key, entry.value = key, rng.choice(names)
    for value in list(graph.input)[:1]:
        value.type.denotation = "IMAGE"
    if rng.random() < 0.3 and model.ir_version >= 11:
        device = model.configuration.add()
        device.name, device.num_devices = "two", 2


def declare_outputs(model, base):
    """Shapes of outputs that have none, from the recorded ones: onnx.checker wants them."""
    for k, value in enumerate(model.graph.output):
        path = base.parent / "test_data_set_0" / f"output_{k}.pb"
        if value.type.tensor_type.HasField("shape") or not path.exists():
            continue
        tensor = TensorProto.FromString(path.read_bytes())
        value.type.tensor_type.shape.SetInParent()
        for size in tensor.dims:
            value.type.tensor_type.shape.dim.add().dim_value = size


def prepare(rng, object, model, base, file_name):
    """The external data of the model, or b""."""
    if object in ("tensor", "sparse", "external", "value", "note") or rng.random() < 0.2:
        add_constants(rng, model, base)
    if object == "value" and rng.random() < 0.7:
        add_infos(model)
    if object == "function" and not model.functions:
        add_function(rng, model)
    if object == "sparse":
        add_sparse(rng, model)
    if object == "note":
        add_notes(rng, model)
    if object == "trial":
        declare_outputs(model, base)
    return add_external(rng, model, file_name) if object == "external" else b""


# ---- one mutant

def change(rng, verb, object, model):
    groups = {}
    objects = TRIAL_SITES if object == "trial" else (object,)
    for site in sites_of(model):
        if site.object in objects:
            groups.setdefault(site.group(), []).append(site)
    names = sorted(groups)
    for _ in range(12):
        if not names:
            return False
        name = rng.choice(names)
        if VERB[verb](rng, rng.choice(groups[name]), model):
            return name
    return False


def change_file(rng, verb, blob):
    """The file of external data, in place of the model: gone, cut, or longer."""
    return {"drop": None, "renumber": blob[:len(blob) // 2]}.get(verb, blob + b"\0" * 64)


class Mutant:
    def __init__(self, model, blob, place, base):
        self.model, self.blob, self.base = model, blob, base
        self.place = (*place, base.parent.name)

    def write(self, path):
        path = pathlib.Path(path)
        data = self.model.SerializeToString()
        path.write_bytes(data.replace(STAND_IN.encode(), NOT_UTF8))
        if self.blob:
            path.with_suffix(".bin").write_bytes(self.blob)


def mutate(seed, kind, number, bases, file_name):
    """A Mutant, of the first base (of those a generator of random numbers picks) that has the place."""
    verb, object = kind.split()
    rng = random.Random(f"{seed} {kind} {number}")
    for _ in range(400):
        base = rng.choice(rng.choice(bases[object]))
        model = onnx.load_model_from_string(base.read_bytes())
        blob = prepare(rng, object, model, base, file_name)
        before = model.SerializeToString()
        if object == "external" and blob and rng.random() < 0.15:
            return Mutant(model, change_file(rng, verb, blob), ("file",), base)
        place = change(rng, verb, object, model)
        if place and model.SerializeToString() != before:
            return Mutant(model, blob, place, base)
    raise RuntimeError(f"no base has a place for '{kind}'")
