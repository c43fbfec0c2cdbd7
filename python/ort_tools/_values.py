"""Values between numpy and the library: tensors without a copy where memory allows, strings, sequences, maps."""
import ctypes
import functools

import numpy as np

from . import _abi
from ._abi import allocator, api, make, number
from ._missing import Named

try:
    import ml_dtypes
except ImportError: # only numpy's own types then
    ml_dtypes = None

TENSOR, SEQUENCE, MAP, OPAQUE, SPARSE, OPTIONAL = range(1, 7)
STRING = 8
NAMES = ("undefined", "float", "uint8", "int8", "uint16", "int16", "int32", "int64", "string", "bool", "float16", "double",
         "uint32", "uint64", "complex64", "complex128", "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2",
         "float8e5m2fnuz", "uint4", "int4", "float4e2m1", "uint2", "int2", "float8e8m0")
_NUMPY = {1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64, 9: np.bool_,
          10: np.float16, 11: np.float64, 12: np.uint32, 13: np.uint64, 14: np.complex64, 15: np.complex128}
_EXTRA = {16: "bfloat16", 17: "float8_e4m3fn", 18: "float8_e4m3fnuz", 19: "float8_e5m2", 20: "float8_e5m2fnuz"}
DTYPES = {number_: np.dtype(kind) for number_, kind in _NUMPY.items()}
if ml_dtypes:
    DTYPES.update({number_: np.dtype(getattr(ml_dtypes, name)) for number_, name in _EXTRA.items()})
ELEMENTS = {dtype: number_ for number_, dtype in DTYPES.items()}
RAW = {16: np.dtype(np.uint16), 17: np.dtype(np.uint8), 18: np.dtype(np.uint8), 19: np.dtype(np.uint8), 20: np.dtype(np.uint8)}
SMALL = 4096 # bytes that are copied rather than kept


def element_of(kind):
    """The number of an element type that is given as one, as numpy's, or by name."""
    if isinstance(kind, int):
        return kind
    if isinstance(kind, str) and kind in NAMES:
        return NAMES.index(kind)
    if kind in (str, np.str_, object):
        return STRING
    return ELEMENTS[np.dtype(kind)]


def shape_array(shape):
    return _dims_type(len(shape))(*shape)


class Handle:
    """An OrtValue of the library, released with its last reference."""
    __slots__ = ("address", "keep")

    def __init__(self, address, keep=None):
        self.address = address
        self.keep = keep # memory that it lies on

    def __del__(self):
        if self.address:
            api.ReleaseValue(self.address)

    def __reduce__(self):
        raise TypeError("cannot pickle or copy an OrtValue: numpy() gives an array")


def tensor_info(address):
    """(element type, shape) of a tensor; None: it is something else."""
    element, dims, rank = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_size_t()
    status = _abi.refer_to_tensor(address, ctypes.byref(element), ctypes.byref(dims), ctypes.byref(rank))
    if status:
        _abi.release_status(status)
        return None
    if not rank.value:
        return element.value, ()
    return element.value, tuple(_dims_type(rank.value).from_address(dims.value))


@functools.cache
def _dims_type(rank):
    return ctypes.c_int64 * max(rank, 1)


def _from_strings(array):
    handle = Handle(make(api.CreateTensorAsOrtValue, allocator, shape_array(array.shape), array.ndim, STRING))
    for i, item in enumerate(array.flat):
        data = item if isinstance(item, bytes) else str(item).encode()
        room = make(api.GetResizedStringTensorElementBuffer, handle.address, i, len(data))
        if data:
            ctypes.memmove(room, data, len(data))
    return handle


def from_numpy(array, element=None):
    """A value on the array's memory, or on that of a contiguous copy."""
    array = np.asarray(array)
    if array.dtype.kind in "OUST":
        return _from_strings(array)
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("="))
    element = element or ELEMENTS.get(array.dtype)
    if not element:
        raise RuntimeError(f"Unexpected input data type: numpy's {array.dtype} has no element type")
    flags = array.flags
    if not (flags.c_contiguous and flags.aligned):
        array = np.ascontiguousarray(array)
    out = ctypes.c_void_p()
    api.CreateTensorWithDataAsOrtValue(_abi.cpu_memory, array.__array_interface__["data"][0], array.nbytes,
                                       shape_array(array.shape), array.ndim, element, ctypes.byref(out))
    return Handle(out.value, array)


def from_python(value):
    """Arrays, lists (sequences), dicts (maps), values of this package."""
    if isinstance(value, Handle):
        return value
    if hasattr(value, "_ortvalue"): # as what its own packages wrap
        return from_python(value._ortvalue)
    if hasattr(value, "_handle"):
        return value._handle
    if isinstance(value, dict):
        keys, items = list(value), list(value.values())
        parts = [from_numpy(np.array(keys, np.int64 if isinstance(keys[0], (int, np.integer)) else object)),
                 from_numpy(np.array(items, np.float32 if isinstance(items[0], float) else None))]
        return _collect(parts, MAP)
    if isinstance(value, list) and value and isinstance(value[0], (np.ndarray, dict)):
        return _collect([from_python(item) for item in value], SEQUENCE)
    return from_numpy(value)


def _collect(parts, kind):
    array = (ctypes.c_void_p * len(parts))(*(p.address for p in parts))
    return Handle(make(api.CreateValue, array, len(parts), kind), parts)


def _strings(handle, shape):
    array = np.empty(shape, object)
    for i in range(array.size):
        length = number(api.GetStringTensorElementLength, handle.address, i)
        room = ctypes.create_string_buffer(max(length, 1))
        api.GetStringTensorElement(handle.address, length, i, room)
        array.flat[i] = room.raw[:length].decode(errors="surrogateescape")
    return array


def tensor_to_numpy(handle):
    return _to_array(handle, *tensor_info(handle.address))


def _to_array(handle, element, shape):
    if element == STRING:
        return _strings(handle, shape)
    dtype = DTYPES.get(element) or RAW.get(element)
    if dtype is None:
        raise ERRORS_NOT_IMPLEMENTED(f"numpy has no type for {NAMES[element]}")
    size = dtype.itemsize
    for dim in shape:
        size *= dim
    if not size:
        return np.empty(shape, dtype)
    address = make(api.GetTensorMutableData, handle.address)
    if size <= SMALL:
        return np.frombuffer(bytearray(ctypes.string_at(address, size)), dtype).reshape(shape)
    memory = (ctypes.c_char * size).from_address(address)
    memory.owner = handle
    return np.frombuffer(memory, dtype).reshape(shape)


ERRORS_NOT_IMPLEMENTED = _abi.ERRORS["NotImplemented"]


def _items(handle):
    for i in range(number(api.GetValueCount, handle.address)):
        yield Handle(make(api.GetValue, handle.address, i, allocator), handle)


def to_python(handle):
    """An array; of a sequence a list, of a map a dict; None for an optional without a value."""
    tensor = tensor_info(handle.address)
    if tensor:
        return _to_array(handle, *tensor)
    if not number(api.HasValue, handle.address, kind=ctypes.c_int):
        return None
    kind = number(api.GetValueType, handle.address, kind=ctypes.c_int)
    if kind == SEQUENCE:
        return [to_python(item) for item in _items(handle)]
    if kind == MAP:
        keys, values = (tensor_to_numpy(item) for item in _items(handle))
        return dict(zip(keys.tolist(), values.tolist()))
    raise ERRORS_NOT_IMPLEMENTED("sparse tensors have no form in numpy: as_sparse_tensor() gives their parts")


# ------------------------------------------------------------------------------------- descriptions

def describe(info):
    """(text, shape) of an OrtTypeInfo: 'tensor(float)', ['batch', 3, None]."""
    kind = number(api.GetOnnxTypeFromTypeInfo, info, kind=ctypes.c_int)
    if kind in (TENSOR, SPARSE):
        tensor = make(api.CastTypeInfoToTensorInfo, info)
        element = NAMES[number(api.GetTensorElementType, tensor, kind=ctypes.c_int)]
        return f"{'sparse_' if kind == SPARSE else ''}tensor({element})", _shape(tensor)
    cast, inner, word = {SEQUENCE: (api.CastTypeInfoToSequenceTypeInfo, api.GetSequenceElementType, "seq"),
                         OPTIONAL: (api.CastTypeInfoToOptionalTypeInfo, api.GetOptionalContainedTypeInfo, "optional"),
                         MAP: (api.CastTypeInfoToMapTypeInfo, api.GetMapValueType, "map")}.get(kind, (None, None, "opaque"))
    if not cast:
        return word, []
    part = make(cast, info)
    element = make(inner, part)
    content, shape = describe(element)
    api.ReleaseTypeInfo(element)
    if kind == MAP:
        content = f"{NAMES[number(api.GetMapKeyType, part, kind=ctypes.c_int)]},{content}"
    return f"{word}({content})", shape if kind == OPTIONAL else []


def _shape(tensor):
    rank = number(api.GetDimensionsCount, tensor)
    dims, symbols = (ctypes.c_int64 * max(rank, 1))(), (ctypes.c_char_p * max(rank, 1))()
    api.GetDimensions(tensor, dims, rank)
    api.GetSymbolicDimensions(tensor, symbols, rank)
    return [dims[i] if dims[i] >= 0 else symbols[i].decode() or None for i in range(rank)]


class OrtDevice(Named):
    """Where a value lies: the processor's memory, whose number is 0."""

    def __init__(self, kind=0, number_=0):
        self._kind, self._number = kind, number_

    @staticmethod
    def cpu():
        return 0

    @staticmethod
    def default_memory():
        return 0

    @staticmethod
    def make(name, number_, vendor_id=-1):
        check_device(name)
        return OrtDevice(0, number_)

    def device_mem_type(self):
        return 0

    def device_vendor_id(self):
        return 0

    def device_type(self):
        return self._kind

    def device_id(self):
        return self._number


def check_device(kind):
    if kind.lower() != "cpu":
        raise RuntimeError(f"Unsupported device {kind!r}: this build runs on the CPU")


class OrtValue(Named):
    """A value that stays in the library's form between runs."""

    def __init__(self, handle):
        if not isinstance(handle, Handle):
            raise ValueError("An OrtValue is made by OrtValue.ortvalue_from_numpy() and its like")
        self._handle = handle

    @staticmethod
    def ortvalue_from_numpy(array, device_type="cpu", device_id=0, vendor_id=-1):
        check_device(device_type)
        if isinstance(array, np.ndarray) and array.dtype.kind not in "OUST":
            array = np.array(array, order="C") # a copy: the caller may change theirs
        return OrtValue(from_numpy(array))

    @staticmethod
    def ortvalue_from_numpy_with_onnx_type(array, onnx_element_type):
        return OrtValue(from_numpy(np.array(array, order="C"), element_of(onnx_element_type)))

    @staticmethod
    def ortvalue_from_shape_and_type(shape, element_type, device_type="cpu", device_id=0, vendor_id=-1):
        check_device(device_type)
        return OrtValue(Handle(make(api.CreateTensorAsOrtValue, allocator, shape_array(shape), len(shape),
                                    element_of(element_type))))

    @staticmethod
    def ort_value_from_sparse_tensor(sparse_tensor):
        return OrtValue(sparse_tensor._handle)

    def as_sparse_tensor(self):
        from ._sparse import SparseTensor
        return SparseTensor(self._handle)

    def data_ptr(self):
        return make(api.GetTensorMutableData, self._handle.address)

    def device_name(self):
        return "cpu"

    def device_id(self):
        return 0

    def _kind(self):
        return number(api.GetValueType, self._handle.address, kind=ctypes.c_int)

    def shape(self):
        return list(tensor_info(self._handle.address)[1])

    def element_type(self):
        return tensor_info(self._handle.address)[0]

    def data_type(self):
        if self.is_sparse_tensor():
            return self.as_sparse_tensor().data_type()
        return f"tensor({NAMES[self.element_type()]})" if self.is_tensor() else "seq" if self.is_tensor_sequence() else "map"

    def tensor_size_in_bytes(self):
        return number(api.GetTensorSizeInBytes, self._handle.address)

    def has_value(self):
        return bool(number(api.HasValue, self._handle.address, kind=ctypes.c_int))

    def is_tensor(self):
        return self._kind() == TENSOR

    def is_sparse_tensor(self):
        return self._kind() == SPARSE

    def is_tensor_sequence(self):
        return self._kind() == SEQUENCE

    def __dlpack__(self, **options):
        return _to_array(self._handle, *tensor_info(self._handle.address)).__dlpack__(**options)

    def __dlpack_device__(self):
        return 1, 0 # kDLCPU

    @staticmethod
    def from_dlpack(data, is_bool_tensor=False):
        array = np.from_dlpack(data)
        return OrtValue(from_numpy(array.astype(np.bool_) if is_bool_tensor else array))

    def numpy(self):
        return np.array(to_python(self._handle)) if self.is_tensor() else to_python(self._handle)

    def update_inplace(self, array):
        element, shape = tensor_info(self._handle.address)
        array = np.ascontiguousarray(array)
        if array.shape != shape or ELEMENTS.get(array.dtype) != element:
            raise RuntimeError(f"update_inplace: {array.dtype}{list(array.shape)} doesn't fit {NAMES[element]}{list(shape)}")
        ctypes.memmove(self.data_ptr(), array.ctypes.data, array.nbytes)


def is_dlpack_uint8_tensor(data):
    return np.from_dlpack(data).dtype == np.uint8


def copy_tensors(src, dst, stream=None):
    """Contents of tensors into others of the same types and shapes."""
    if stream is not None:
        raise ERRORS_NOT_IMPLEMENTED("copy_tensors: streams of devices aren't provided by ort-tools")
    if len(src) != len(dst):
        raise RuntimeError("copy_tensors: as many tensors to copy into as to copy from")
    sources, targets = ((ctypes.c_void_p * len(values))(*(v._handle.address for v in values)) for values in (src, dst))
    api.CopyTensors(_abi.env, sources, targets, None, len(src))
