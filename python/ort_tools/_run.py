"""Runs of one session with the same names: what doesn't change from run to run is made once.

A call through ctypes costs more the more objects it must make of its arguments. So names, arrays of pointers and places
for results belong to a state, of which each run takes one for itself; small inputs are copied into values that stay.
Results are copied, or lie on the library's memory and keep it.
"""
import ctypes

import numpy as np

from . import _abi, _values
from ._abi import cpu_memory, fail
from ._values import DTYPES, ELEMENTS, SMALL, STRING, Handle

_run, _create, _refer, _data, _release = (_abi.raw(name) for name in (
    "Run", "CreateTensorWithDataAsOrtValue", "GetTensorElementTypeAndShapeDataReference", "GetTensorMutableData",
    "ReleaseValue"))
_string_at = ctypes.string_at


class Absent(Exception):
    """An input is None: it isn't fed, so other names are."""


class _Slot:
    """A value on memory of its own, for inputs of one shape and type."""
    __slots__ = ("array", "shape", "dtype", "handle", "address")

    def __init__(self, array, element):
        self.array = np.empty(array.shape, array.dtype)
        self.shape, self.dtype = array.shape, array.dtype
        self.handle = _values.from_numpy(self.array, element)
        self.address = self.handle.address


class _State:
    """What one run writes."""

    def __init__(self, inputs, outputs):
        self.inputs, self.results = (ctypes.c_void_p * max(inputs, 1))(), (ctypes.c_void_p * outputs)()
        self.none = bytes(8 * outputs)
        self.slots = [None] * inputs
        self.element, self.rank = ctypes.c_int(), ctypes.c_size_t()
        self.dims, self.data = ctypes.c_void_p(), ctypes.c_void_p()
        self.places = tuple(map(ctypes.addressof, (self.element, self.dims, self.rank)))
        self.at_data, self.at_inputs, self.at_results = map(ctypes.addressof, (self.data, self.inputs, self.results))


class Plan:
    """Inputs and outputs by name, and states that no run uses at the moment. It doesn't hold the session, which holds it."""

    def __init__(self, session, names, inputs, outputs):
        self.names = names
        self.session, self.count, self.output_count = session, len(inputs), len(outputs)
        self.inputs, self.outputs = (ctypes.c_char_p * max(len(n), 1) for n in (inputs, outputs))
        self.inputs, self.outputs = self.inputs(*inputs), self.outputs(*outputs)
        self.at_inputs, self.at_outputs = ctypes.addressof(self.inputs), ctypes.addressof(self.outputs)
        self.spare, self.shapes = [], {}

    def run(self, values, options, convert):
        """Results as Python has them. `convert(name, value)`: the handle of an input that is no plain array."""
        try:
            state = self.spare.pop()
        except IndexError:
            state = _State(self.count, self.output_count)
        keep = self._feed(state, values, convert)
        status = _run(self.session, options, self.at_inputs, state.at_inputs, self.count, self.at_outputs,
                      self.output_count, state.at_results)
        del keep
        if status:
            ctypes.memset(state.at_results, 0, 8 * self.output_count)
            self.spare.append(state)
            fail(status)
        addresses = state.results[:]
        ctypes.memmove(state.at_results, state.none, len(state.none))
        results = [self._result(state, address) for address in addresses]
        self.spare.append(state)
        return results

    def _feed(self, state, values, convert):
        keep = []
        for i, value in enumerate(values):
            if type(value) is not np.ndarray or not (element := ELEMENTS.get(value.dtype)):
                if value is None:
                    raise Absent
                handle = convert(self.names[i], value)
            elif value.nbytes <= SMALL:
                slot = state.slots[i]
                if not slot or slot.shape != value.shape or slot.dtype is not value.dtype:
                    slot = state.slots[i] = _Slot(value, element)
                slot.array[...] = value
                state.inputs[i] = slot.address
                continue
            else:
                handle = _values.from_numpy(value, element)
            keep.append(handle)
            state.inputs[i] = handle.address
        return keep

    def _shape(self, key):
        shape = tuple(np.frombuffer(key, np.int64).tolist())
        count = 1
        for dim in shape:
            count *= dim
        if len(self.shapes) < 1000:
            self.shapes[key] = shape, count
        return shape, count

    def _result(self, state, address):
        status = _refer(address, *state.places)
        if status:
            _abi.release_status(status)
            return _values.to_python(Handle(address))
        element = state.element.value
        dtype = DTYPES.get(element)
        key = _string_at(state.dims.value, 8 * rank) if (rank := state.rank.value) else b""
        shape, count = self.shapes.get(key) or self._shape(key)
        if dtype is None or element == STRING or not count or count * dtype.itemsize > SMALL:
            return _values.to_python(Handle(address))
        status = _data(address, state.at_data)
        if status:
            _release(address)
            fail(status)
        array = np.ndarray(shape, dtype, bytearray(_string_at(state.data.value, count * dtype.itemsize)))
        _release(address)
        return array
