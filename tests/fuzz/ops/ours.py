"""ours.py - libort.so through ctypes: load a model from memory, run it once on numpy values.

Values are numpy arrays (strings: object arrays), lists (sequences), dicts (maps) and None (an absent
optional). Elements below 8 bits travel in the packed form of TensorProto.raw_data, which is also the
library's. The structs repeat those of lib/ort.h.
"""
import ctypes
import os
import pathlib

import numpy as np
import onnx
from onnx import helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[3]
STRING = onnx.TensorProto.STRING
UNSUPPORTED = 4  # ort_status
c = ctypes
PTR, I64, INT = c.c_void_p, c.c_int64, c.c_int


class OrtError(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class _Error(c.Structure):
    _fields_ = [("status", INT), ("count", INT), ("message", c.c_char * 2000)]


class _EnvOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("threads", INT), ("pin", c.c_bool), ("spin_us", INT), ("isa", c.c_char_p),
                ("keep_denormals", c.c_bool), ("math_strict", c.c_bool),
                ("max_memory_bytes", c.c_size_t), ("log", PTR), ("log_arg", PTR),
                ("log_level", INT)]


_SIGNATURES = {
    "ort_value_dtype": (INT, [PTR]), "ort_value_rank": (INT, [PTR]),
    "ort_value_dims": (c.POINTER(I64), [PTR]), "ort_value_count": (I64, [PTR]),
    "ort_value_data": (PTR, [PTR]), "ort_value_bytes": (c.c_size_t, [PTR]),
    "ort_value_string": (PTR, [PTR, I64, c.POINTER(c.c_size_t)]),
    "ort_value_item": (PTR, [PTR, c.c_size_t]), "ort_value_get_kind": (INT, [PTR]),
    "ort_value_free": (None, [PTR]), "ort_model_free": (None, [PTR]),
    "ort_session_free": (None, [PTR]),
    "ort_session_input_count": (c.c_size_t, [PTR]),
    "ort_session_output_count": (c.c_size_t, [PTR]),
    "ort_env_isa": (c.c_char_p, [PTR]),
    "ort_env_new": (INT, [PTR] * 3),
    "ort_value_new_tensor": (INT, [INT, INT, c.POINTER(I64), PTR, PTR]),
    "ort_value_new_sequence": (INT, [PTR] * 2), "ort_value_append": (INT, [PTR] * 3),
    "ort_value_new_map": (INT, [PTR] * 4),
    "ort_value_set_string": (INT, [PTR, I64, c.c_char_p, c.c_size_t, PTR]),
    "ort_model_load_memory": (INT, [PTR, c.c_char_p, c.c_size_t, PTR, PTR, PTR]),
    "ort_session_new": (INT, [PTR] * 5),
    "ort_session_run": (INT, [PTR] * 3 + [c.c_size_t] + [PTR] * 2 + [c.c_size_t] + [PTR] * 2),
}


def to_packed(array):
    return numpy_helper.from_array(array).raw_data


def from_packed(dtype, dims, data):
    proto = onnx.TensorProto(data_type=dtype, dims=dims, raw_data=data)
    return numpy_helper.to_array(proto)


class Runtime:
    """One environment; run() may be called any number of times."""

    def __init__(self, threads=1):
        path = os.environ.get("ORT_LIBRARY", str(ROOT / "build/lib/libort.so"))
        self.lib = c.CDLL(path)
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(self.lib, name)
            function.restype, function.argtypes = result, arguments
        options = _EnvOptions(size=c.sizeof(_EnvOptions), spin_us=-1, log_level=1)
        options.threads, options.keep_denormals = threads, True
        isa = os.environ.get("ORT_ISA")
        options.isa = isa.encode() if isa else None
        self.env = PTR()
        self._call("ort_env_new", c.byref(options), c.byref(self.env))

    def isa(self):
        return self.lib.ort_env_isa(self.env).decode()

    def _call(self, name, *arguments):
        err = _Error()
        status = getattr(self.lib, name)(*arguments, c.byref(err))
        if status:
            raise OrtError(status, err.message.decode(errors="replace"))

    def _tensor(self, array):
        dtype = helper.np_dtype_to_tensor_dtype(array.dtype)
        dims = (I64 * max(array.ndim, 1))(*array.shape)
        value = PTR()
        self._call("ort_value_new_tensor", dtype, array.ndim, dims, c.byref(value))
        if dtype == STRING:
            for i, text in enumerate(array.reshape(-1)):
                data = str(text).encode()
                self._call("ort_value_set_string", value, i, data, len(data))
        elif array.size:
            data = to_packed(array)
            assert len(data) == self.lib.ort_value_bytes(value), (array.dtype, array.shape)
            c.memmove(self.lib.ort_value_data(value), data, len(data))
        return value

    def _value(self, given):
        if given is None:
            return PTR()
        value = PTR()
        if isinstance(given, list):
            self._call("ort_value_new_sequence", c.byref(value))
            for item in given:
                part = self._value(item)
                self._call("ort_value_append", value, part)
                self.lib.ort_value_free(part)
            return value
        if isinstance(given, dict):
            keys, values = (np.array(list(part)) for part in (given.keys(), given.values()))
            parts = [self._tensor(keys.astype(object) if keys.dtype.kind == "U" else keys),
                     self._tensor(values.astype(given.dtype))]
            self._call("ort_value_new_map", *parts, c.byref(value))
            for part in parts:
                self.lib.ort_value_free(part)
            return value
        return self._tensor(given)

    def _array(self, value):
        lib = self.lib
        dtype, rank, count = (getattr(lib, f"ort_value_{n}")(value)
                              for n in ("dtype", "rank", "count"))
        dims = lib.ort_value_dims(value)[:rank]
        if dtype == STRING:
            size, texts = c.c_size_t(), []
            for i in range(count):
                at = lib.ort_value_string(value, i, c.byref(size))
                texts.append(c.string_at(at, size.value).decode(errors="surrogateescape"))
            out = np.empty(count, object)
            out[:] = texts
            return out.reshape(dims)
        data = c.string_at(lib.ort_value_data(value), lib.ort_value_bytes(value)) if count else b""
        return from_packed(dtype, dims, data)

    def _take(self, value):
        lib = self.lib
        kind = lib.ort_value_get_kind(value) if value else 0
        if kind == 1:
            return self._array(value)
        if kind == 2:
            return [self._take(lib.ort_value_item(value, i))
                    for i in range(lib.ort_value_count(value))]
        if kind == 3:
            keys, values = (self._take(lib.ort_value_item(value, i)) for i in (0, 1))
            return dict(zip(keys.tolist(), values.tolist(), strict=True))
        return None

    def run(self, model, inputs):
        """model: bytes; inputs: values in the order of the graph's inputs."""
        lib, loaded, session = self.lib, PTR(), PTR()
        given, outputs = [], None
        try:
            self._call("ort_model_load_memory", self.env, model, len(model), None, c.byref(loaded))
            self._call("ort_session_new", self.env, loaded, None, c.byref(session))
            given = [self._value(v) for v in inputs]
            outputs = (PTR * max(lib.ort_session_output_count(session), 1))()
            feeds = (PTR * max(len(given), 1))(*given)
            self._call("ort_session_run", session, None, feeds, len(given), None, outputs,
                       lib.ort_session_output_count(session), None)
            return [self._take(v) for v in outputs]
        finally:
            for value in [*given, *(outputs or [])]:
                if value:
                    lib.ort_value_free(value)
            lib.ort_session_free(session)
            lib.ort_model_free(loaded)
