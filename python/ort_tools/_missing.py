"""What onnxruntime has and this package lacks: each raises with its name, and with what helps.

tests/tools/check_python_names.py compares onnxruntime's names with ours and these.
"""
import importlib.abc
import sys

_DEVICES = "this build runs on the processor alone; `ort-run --providers` takes other devices"
_COMPILED = "models aren't compiled for devices; `ort-optimize --pack` makes a file from which a model starts faster"
_PLUGINS = "providers of onnxruntime's plugin interface aren't taken; `ort-run --provider-lib` has one of its own"
_SCHEMAS = "`ort-inspect` tells which operators a model has and which run"
_QUANTIZE = "`ort-quantize weights` makes models with weights of a few bits"

# owner: {names: what helps}; "" is the module, STATE its module onnxruntime_pybind11_state.
STATE = "onnxruntime_pybind11_state"
_NAMES = {
    "": {"ModelCompiler OrtCompileApiFlags OrtEpContextData OrtEpContextDataBuffer OrtExternalInitializerInfo": _COMPILED,
         "OrtEpAssignedNode OrtEpAssignedSubgraph OrtSyncStream": _DEVICES,
         "register_execution_provider_library unregister_execution_provider_library": _PLUGINS,
         "set_global_thread_pool_sizes": "SessionOptions.intra_op_num_threads sets the threads of a session",
         "AdapterFormat": "LoraAdapter.Load reads such files; onnxruntime's own package writes them",
         "print_debug_info": "get_build_info() tells which library this is"},
    STATE: {"get_all_operator_schema get_all_opkernel_def get_registered_ep_kernel_defs opkernel schemadef": _SCHEMAS,
            "OrtCompiledModelCompatibility get_compatibility_info_from_model get_compatibility_info_from_model_bytes "
            "get_model_compatibility_for_ep_devices": _COMPILED,
            "OrtDeviceEpIncompatibilityReason get_hardware_device_ep_incompatibility_details": _DEVICES,
            "SessionObjectInitializer get_session_initializer get_default_session_options": "SessionOptions() has the defaults",
            "pack_fp4_weights_for_cuda_moe_gemm quantize_matmul_2bits quantize_matmul_4bits quantize_matmul_8bits "
            "quantize_matmul_bnb4 quantize_qdq_matmul_2bits quantize_qdq_matmul_4bits": _QUANTIZE},
    "InferenceSession": {"release_captured_graph set_ep_dynamic_options get_provider_graph_assignment_info": _DEVICES,
                         "run_with_ortvaluevector": "run_with_ort_values takes and gives OrtValues",
                         "set_tuning_results": "kernels are chosen by shape alone, and there is nothing to tune"},
    "IOBinding": {"get_outputs_as_ortvaluevector": "get_outputs() gives a list of OrtValues"},
    "SessionOptions": {"add_provider_for_devices set_provider_selection_policy_delegate": _DEVICES,
                       "set_ep_context_data_read_func clear_ep_context_data_read_func": _COMPILED},
    "OrtEpDevice": {"create_sync_stream": _DEVICES},
}
MISSING = {owner: {name: remedy for names, remedy in rows.items() for name in names.split()} for owner, rows in _NAMES.items()}
MISSING[STATE].update((name, remedy) for name, remedy in MISSING[""].items() if name != "print_debug_info")
MISSING[STATE]["OrtValueVector"] = MISSING["InferenceSession"]["run_with_ortvaluevector"]

# Parts of onnxruntime that are programs over its interface, and no part of running models.
MODULES = {
    "quantization": "`ort-quantize` quantizes models",
    "transformers": "`ort-optimize` has these rewrites",
    "tools": "`ort-optimize` and `ort-inspect` do such work",
    "datasets": "onnxruntime's example models are in its own package",
    "backend": "InferenceSession runs models",
    "training": "stock builds have no training either",
    "capi.onnxruntime_validation": "there is no distribution to validate; get_build_info() tells which library this is",
    "capi.onnxruntime_collect_build_info": "get_build_info() tells which library this is",
    "capi.build_and_package_info": "get_build_info() tells which library this is",
    "capi.convert_npz_to_onnx_adapter": "LoraAdapter.Load takes the files that it writes",
    "capi.libonnxruntime_providers_shared": _PLUGINS,
    "capi._ld_preload": "there is nothing to load before a session is made",
}


def text_of(owner, name):
    """What the error says; None: onnxruntime has no such name either."""
    remedy = MISSING.get(owner, {}).get(name)
    whole = f"onnxruntime.{owner}.{name}" if owner else f"onnxruntime.{name}"
    return remedy and f"{whole} isn't provided by ort-tools: {remedy}"


def attribute(owner, name):
    """The error for a module's or an object's attribute that isn't there."""
    return AttributeError(text_of(owner, name) or f"{owner or 'onnxruntime'!r} has no attribute {name!r}")


class Named:
    """A class of onnxruntime's whose missing attributes raise with what helps."""

    def __getattr__(self, name):
        raise attribute(type(self).__name__, name)


class _Finder(importlib.abc.MetaPathFinder):
    """Comes before the finders of files, which would take these modules from an onnxruntime that is installed, and with
    them its library into the process."""

    def find_spec(self, name, path=None, target=None):
        root, _, rest = name.partition(".")
        remedy = MODULES.get(rest) if root == "onnxruntime" else None
        if remedy:
            raise ModuleNotFoundError(f"{name} isn't provided by ort-tools: {remedy}; in a process without ort-tools, "
                                      "onnxruntime's own package has it", name=name)


def refuse_modules():
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
