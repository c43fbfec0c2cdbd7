"""Sparse tensors: values that a program makes and reads; no model takes one."""
import ctypes
import enum

import numpy as np

from . import _abi, _values
from ._abi import api, make, number
from ._missing import Named

_COO, _CSR_INNER, _CSR_OUTER, _BLOCKS = range(4) # kinds of indices


class OrtSparseFormat(enum.IntEnum):
    ORT_SPARSE_UNDEFINED = 0
    ORT_SPARSE_COO = 1
    ORT_SPARSE_CSRC = 2
    ORT_SPARSE_BLOCK_SPARSE = 4


class _View:
    def __init__(self, tensor):
        self._tensor = tensor


class SparseCooView(_View):
    def indices(self):
        return self._tensor._indices(_COO)


class SparseCsrView(_View):
    def inner(self):
        return self._tensor._indices(_CSR_INNER)

    def outer(self):
        return self._tensor._indices(_CSR_OUTER)


class SparseBlockSparseView(_View):
    def indices(self):
        return self._tensor._indices(_BLOCKS)


class SparseTensor(Named):
    """The elements of a tensor that aren't zero, and where they lie."""

    def __init__(self, sparse_tensor):
        if not isinstance(sparse_tensor, _values.Handle):
            raise ValueError("A SparseTensor is made by SparseTensor.sparse_coo_from_numpy() and its like")
        self._handle = sparse_tensor

    @classmethod
    def _make(cls, dense_shape, values, use, *indices):
        """On the memory of the arrays; strings are refused by the library, in its words."""
        values = np.ascontiguousarray(values)
        kept = [np.ascontiguousarray(i, np.int64) for i in indices]
        if values.dtype not in _values.ELEMENTS:
            raise _abi.ERRORS["NotImplemented"](f"sparse tensors of {values.dtype} aren't provided by ort-tools")
        shape = [int(d) for d in dense_shape]
        handle = _values.Handle(make(api.CreateSparseTensorWithValuesAsOrtValue, _abi.cpu_memory, values.ctypes.data,
                                     _values.shape_array(shape), len(shape), _values.shape_array(values.shape), values.ndim,
                                     _values.ELEMENTS[values.dtype]), (values, kept))
        use(handle.address, *(part for i in kept for part in (i.ctypes.data, i.size)))
        return cls(handle)

    @classmethod
    def sparse_coo_from_numpy(cls, dense_shape, values, coo_indices, ort_device):
        return cls._make(dense_shape, values, api.UseCooIndices, coo_indices)

    @classmethod
    def sparse_csr_from_numpy(cls, dense_shape, values, inner_indices, outer_indices, ort_device):
        return cls._make(dense_shape, values, api.UseCsrIndices, inner_indices, outer_indices)

    def _described(self, function, *arguments):
        info = make(function, self._handle.address, *arguments)
        try:
            element = number(api.GetTensorElementType, info, kind=ctypes.c_int)
            rank = number(api.GetDimensionsCount, info)
            dims = (ctypes.c_int64 * max(rank, 1))()
            api.GetDimensions(info, dims, rank)
            return _values.DTYPES[element], tuple(dims[:rank])
        finally:
            api.ReleaseTensorTypeAndShapeInfo(info)

    def _array(self, address, dtype, shape):
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        if not size:
            return np.empty(shape, dtype)
        memory = (ctypes.c_char * size).from_address(address)
        memory.owner = self._handle
        return np.frombuffer(memory, dtype).reshape(shape)

    def _indices(self, kind):
        count = ctypes.c_size_t()
        address = ctypes.c_void_p()
        dtype, shape = self._described(api.GetSparseTensorIndicesTypeShape, kind)
        api.GetSparseTensorIndices(self._handle.address, kind, ctypes.byref(count), ctypes.byref(address))
        return self._array(address.value, dtype, shape)

    def _view(self, view, kind):
        if self.format() != kind:
            raise RuntimeError(f"{kind.name} view of a tensor of {self.format().name}")
        return view(self)

    def values(self):
        dtype, shape = self._described(api.GetSparseTensorValuesTypeAndShape)
        return self._array(make(api.GetSparseTensorValues, self._handle.address), dtype, shape)

    def as_coo_view(self):
        return self._view(SparseCooView, OrtSparseFormat.ORT_SPARSE_COO)

    def as_csrc_view(self):
        return self._view(SparseCsrView, OrtSparseFormat.ORT_SPARSE_CSRC)

    def as_blocksparse_view(self):
        return self._view(SparseBlockSparseView, OrtSparseFormat.ORT_SPARSE_BLOCK_SPARSE)

    def to_cuda(self, ort_device):
        raise RuntimeError("Cuda is not available in this build: SparseTensor.to_cuda isn't provided by ort-tools, which runs on "
                           "the processor")

    def format(self):
        return OrtSparseFormat(number(api.GetSparseTensorFormat, self._handle.address, kind=ctypes.c_int))

    def dense_shape(self):
        return list(self._described(api.GetTensorTypeAndShape)[1])

    def data_type(self):
        return f"sparse_tensor({_values.NAMES[_values.ELEMENTS[self._described(api.GetSparseTensorValuesTypeAndShape)[0]]]})"

    def device_name(self):
        return "cpu"
