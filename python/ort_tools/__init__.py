"""ort-tools for Python, with the names of the module onnxruntime.

    import ort_tools as onnxruntime
    session = onnxruntime.InferenceSession("net.onnx")
    (scores,) = session.run(None, {"image": image})

A program that imports onnxruntime runs on it unchanged: `python -m ort_tools.as_onnxruntime prog.py`.
"""
from . import _missing
from ._abi import ERRORS as _ERRORS
from ._abi import VERSION as __version__
from ._devices import (OrtAllocatorType, OrtArenaCfg, OrtDeviceMemoryType, OrtDeviceVendorId, OrtEpDevice,
                       OrtExecutionProviderDevicePolicy, OrtHardwareDevice, OrtHardwareDeviceType, OrtMemoryInfo,
                       OrtMemoryInfoDeviceType, OrtMemType, create_and_register_allocator, create_and_register_allocator_v2,
                       get_ep_devices)
from ._session import (ExecutionMode, ExecutionOrder, GraphOptimizationLevel, InferenceSession, IOBinding,
                       LoraAdapter, ModelMetadata, NodeArg, RunOptions, SessionIOBinding, SessionOptions,
                       disable_telemetry_events, enable_telemetry_events, get_all_providers, get_available_providers,
                       get_build_info, get_device, get_version_string, has_collective_ops, preload_dlls,
                       set_default_logger_severity, set_default_logger_verbosity, set_seed)
from ._sparse import OrtSparseFormat, SparseTensor
from ._values import OrtDevice, OrtValue, copy_tensors

globals().update(_ERRORS)
__author__ = "Microsoft"  # of the interface
__all__ = [name for name in dir() if not name.startswith("_")]


def __getattr__(name):
    raise _missing.attribute("", name)
