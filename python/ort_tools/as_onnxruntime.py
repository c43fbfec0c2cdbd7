"""Runs a program that imports onnxruntime on ort-tools: python -m ort_tools.as_onnxruntime PROGRAM [ARGUMENT ...]

PROGRAM is a file, `-m MODULE` or `-c CODE`, as python itself takes them. Processes that it starts
import what is installed; for these build a wheel of the name onnxruntime (python/README.md).
"""
import pathlib
import runpy
import sys
import types

import ort_tools
from ort_tools import _devices, _missing, _session, _sparse, _values

_COLLECTION = ("InferenceSession", "IOBinding", "OrtValue", "OrtDevice", "OrtDeviceVendorId", "SparseTensor", "copy_tensors",
               "get_available_providers")


_STATE = {_devices: ("ArenaExtendStrategy", "get_hardware_devices"), _values: ("is_dlpack_uint8_tensor",),
          _sparse: ("SparseCooView", "SparseCsrView", "SparseBlockSparseView")}


def _raise(error):
    raise error


def install():
    """The modules that `import onnxruntime` and its submodules find from now on."""
    root = ort_tools
    capi = types.ModuleType("onnxruntime.capi", "modules of the package's own")
    state = types.ModuleType("onnxruntime.capi.onnxruntime_pybind11_state", "exceptions and enumerations")
    state.__dict__.update({name: getattr(root, name) for name in root.__all__})
    state.__dict__.update({name: getattr(module, name) for module, names in _STATE.items() for name in names})
    state.kNextPowerOfTwo, state.kSameAsRequested = _devices.ArenaExtendStrategy
    state.__getattr__ = lambda name: _raise(_missing.attribute(_missing.STATE, name))
    collection = types.ModuleType("onnxruntime.capi.onnxruntime_inference_collection", "sessions")
    collection.__dict__.update({name: getattr(root, name) for name in _COLLECTION})
    collection.Session = root.InferenceSession
    collection.check_and_normalize_provider_args = _session.check_and_normalize_provider_args
    collection.__getattr__ = root.__getattr__
    capi.onnxruntime_pybind11_state = capi._pybind_state = state
    capi.onnxruntime_inference_collection = collection
    capi.__path__ = []
    root.capi = capi
    sys.modules.update({"onnxruntime": root, "onnxruntime.capi": capi, "onnxruntime.capi._pybind_state": state,
                        state.__name__: state, collection.__name__: collection})
    _missing.refuse_modules()


def _refuse(message):
    print(f"as_onnxruntime: {message}", file=sys.stderr)
    return 2


def main():
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__, file=sys.stderr if not arguments else sys.stdout)
        return 2 if not arguments else 0
    first, rest = arguments[0], arguments[1:]
    if first.startswith("-") and first not in ("-m", "-c"):
        return _refuse(f"no option {first!r}: -m MODULE, -c CODE, or a program; python's own options go before -m ort_tools...")
    if first in ("-m", "-c") and not rest:
        return _refuse(f"{first} takes {'a module' if first == '-m' else 'code'}")
    if first == "-m":
        install()
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        install()
        sys.argv = ["-c", *rest[1:]]
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})
    else:
        program = pathlib.Path(first)
        if not program.exists():
            return _refuse(f"can't open {first!r}: there is no such program")
        install()
        sys.argv = arguments
        sys.path[0] = str(program.resolve().parent)
        runpy.run_path(first, run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
