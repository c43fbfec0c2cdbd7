"""A .tflite file as it is made: tensors, constants, operators in their order, and its bytes."""
import collections

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

# What codes mean: number = scale * (code - zero). Arrays of one element, or of one for each slice
# along `axis`.
Units = collections.namedtuple("Units", "scale zero axis")

TYPES = {np.dtype(name): getattr(schema.TensorType, name.upper())
         for name in ("float32", "int32", "int8", "uint8", "bool")}
UNUSUAL = {"CONV_2D": "Conv2D", "DEPTHWISE_CONV_2D": "DepthwiseConv2D", "MAX_POOL_2D": "Pool2D",
           "AVERAGE_POOL_2D": "Pool2D", "BATCH_MATMUL": "BatchMatMul", "PADV2": "PadV2",
           "MEAN": "Reducer", "SUM": "Reducer", "REDUCE_MAX": "Reducer", "REDUCE_MIN": "Reducer",
           "MAXIMUM": "MaximumMinimum", "MINIMUM": "MaximumMinimum", "SELECT_V2": "SelectV2"}
ALIGNMENT = 16      # the schema's, of constants


class Builder(flatbuffers.Builder):
    """The generated code asks for the alignment of bytes where the schema has force_align."""

    def StartVector(self, size, count, alignment):
        return super().StartVector(size, count, max(alignment, ALIGNMENT))


def options_of(kind, settings):
    """(number, object) of the options that belong to an operator."""
    name = UNUSUAL.get(kind) or "".join(w.capitalize() for w in kind.split("_"))
    number = getattr(schema.BuiltinOptions, name + "Options", 0)
    return number, number and getattr(schema, name + "OptionsT")(**settings) or None


def quantization_of(units):
    return schema.QuantizationParametersT(scale=np.asarray(units.scale, np.float32),
                                          zeroPoint=np.asarray(units.zero, np.int64),
                                          quantizedDimension=units.axis)


class File:
    def __init__(self):
        self.buffers = [schema.BufferT()]       # the first one is that of tensors without constants
        self.tensors, self.operators, self.codes = [], [], {}

    def tensor(self, shape, dtype, units=None):
        tensor = schema.TensorT(shape=[int(d) for d in shape], type=TYPES[np.dtype(dtype)],
                                name="t%d" % len(self.tensors))
        if units is not None:
            tensor.quantization = quantization_of(units)
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def constant(self, array, units=None):
        number = self.tensor(array.shape, array.dtype, units)
        data = np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)
        self.buffers.append(schema.BufferT(data=data))
        self.tensors[number].buffer = len(self.buffers) - 1
        return number

    def integers(self, values):
        return self.constant(np.array(values, np.int32))

    def add(self, kind, inputs, outputs, **settings):
        number, options = options_of(kind, settings)
        self.operators.append(schema.OperatorT(
            opcodeIndex=self.codes.setdefault(kind, len(self.codes)), inputs=list(inputs),
            outputs=list(outputs), builtinOptionsType=number, builtinOptions=options))

    def operator_codes(self):
        codes = [getattr(schema.BuiltinOperator, kind) for kind in self.codes]
        return [schema.OperatorCodeT(builtinCode=c, deprecatedBuiltinCode=min(c, 127), version=1)
                for c in codes]

    def content(self, inputs, outputs):
        graph = schema.SubGraphT(tensors=self.tensors, inputs=inputs, outputs=outputs,
                                 operators=self.operators, name="main")
        model = schema.ModelT(version=3, operatorCodes=self.operator_codes(), subgraphs=[graph],
                              buffers=self.buffers)
        builder = Builder(1 << 20)
        builder.Finish(model.Pack(builder), b"TFL3")
        return bytes(builder.Output())
