"""The C ABI: the library, its functions, and exceptions for its statuses.

The functions are slots of a table (abi/slots.def). Each has its number here and the kinds of its
arguments: p pointer, s text, i int, z size_t, q int64, b bool. tests/tools/check_abi.py compares
the numbers.
"""
import ctypes
import os
import pathlib

VERSION = "1.31.1"
API_VERSION = 31

SLOTS = {
    "GetErrorCode": (1, "p"), "GetErrorMessage": (2, "p"), "CreateEnv": (3, "isp"), "CreateSession": (7, "pspp"),
    "CreateSessionFromArray": (8, "ppzpp"), "Run": (9, "ppppzpzp"), "CreateSessionOptions": (10, "p"),
    "SetOptimizedModelFilePath": (11, "ps"), "SetSessionExecutionMode": (13, "pi"), "EnableProfiling": (14, "ps"),
    "EnableMemPattern": (16, "p"), "DisableMemPattern": (17, "p"), "EnableCpuMemArena": (18, "p"),
    "DisableCpuMemArena": (19, "p"), "SetSessionLogId": (20, "ps"), "SetSessionLogVerbosityLevel": (21, "pi"),
    "SetSessionLogSeverityLevel": (22, "pi"), "SetSessionGraphOptimizationLevel": (23, "pi"),
    "SetIntraOpNumThreads": (24, "pi"), "SetInterOpNumThreads": (25, "pi"), "SessionGetInputCount": (30, "pp"),
    "SessionGetOutputCount": (31, "pp"), "SessionGetOverridableInitializerCount": (32, "pp"),
    "SessionGetInputTypeInfo": (33, "pzp"), "SessionGetOutputTypeInfo": (34, "pzp"),
    "SessionGetOverridableInitializerTypeInfo": (35, "pzp"), "SessionGetInputName": (36, "pzpp"),
    "SessionGetOutputName": (37, "pzpp"), "SessionGetOverridableInitializerName": (38, "pzpp"),
    "CreateRunOptions": (39, "p"), "RunOptionsSetRunLogVerbosityLevel": (40, "pi"),
    "RunOptionsSetRunLogSeverityLevel": (41, "pi"), "RunOptionsSetRunTag": (42, "ps"),
    "RunOptionsSetTerminate": (46, "p"), "RunOptionsUnsetTerminate": (47, "p"),
    "CreateTensorAsOrtValue": (48, "ppzip"), "CreateTensorWithDataAsOrtValue": (49, "ppzpzip"),
    "GetTensorMutableData": (51, "pp"), "CastTypeInfoToTensorInfo": (55, "pp"), "GetOnnxTypeFromTypeInfo": (56, "pp"),
    "GetTensorElementType": (60, "pp"), "GetDimensionsCount": (61, "pp"), "GetDimensions": (62, "ppz"),
    "GetSymbolicDimensions": (63, "ppz"), "GetTensorTypeAndShape": (65, "pp"), "GetValueType": (67, "pp"),
    "CreateCpuMemoryInfo": (69, "iip"), "AllocatorFree": (76, "pp"), "GetAllocatorWithDefaultOptions": (78, "p"),
    "AddFreeDimensionOverride": (79, "psq"), "GetValue": (80, "pipp"), "GetValueCount": (81, "pp"),
    "CreateValue": (82, "pzip"), "ReleaseEnv": (92, "p"), "ReleaseStatus": (93, "p"), "ReleaseSession": (95, "p"),
    "ReleaseValue": (96, "p"), "ReleaseRunOptions": (97, "p"), "ReleaseTypeInfo": (98, "p"),
    "ReleaseTensorTypeAndShapeInfo": (99, "p"), "ReleaseSessionOptions": (100, "p"),
    "CastTypeInfoToMapTypeInfo": (103, "pp"), "CastTypeInfoToSequenceTypeInfo": (104, "pp"),
    "GetMapKeyType": (105, "pp"), "GetMapValueType": (106, "pp"), "GetSequenceElementType": (107, "pp"),
    "SessionEndProfiling": (110, "ppp"), "SessionGetModelMetadata": (111, "pp"),
    "ModelMetadataGetProducerName": (112, "ppp"), "ModelMetadataGetGraphName": (113, "ppp"),
    "ModelMetadataGetDomain": (114, "ppp"), "ModelMetadataGetDescription": (115, "ppp"),
    "ModelMetadataLookupCustomMetadataMap": (116, "ppsp"), "ModelMetadataGetVersion": (117, "pp"),
    "ReleaseModelMetadata": (118, "p"), "ModelMetadataGetCustomMetadataMapKeys": (123, "pppp"),
    "AddFreeDimensionOverrideByName": (124, "psq"), "GetStringTensorElementLength": (127, "pzp"),
    "GetStringTensorElement": (128, "pzzp"), "AddSessionConfigEntry": (130, "pss"), "RunWithBinding": (133, "ppp"),
    "CreateIoBinding": (134, "pp"), "ReleaseIoBinding": (135, "p"), "BindInput": (136, "psp"),
    "BindOutput": (137, "psp"), "BindOutputToDevice": (138, "psp"), "GetBoundOutputValues": (140, "pppp"),
    "ClearBoundInputs": (141, "p"), "ClearBoundOutputs": (142, "p"), "SessionGetProfilingStartTimeNs": (146, "pp"),
    "AddInitializer": (150, "psp"), "ModelMetadataGetGraphDescription": (158, "ppp"), "AddRunConfigEntry": (165, "pss"),
    "HasValue": (192, "pp"), "AddExternalInitializers": (210, "pppz"), "UpdateEnvWithCustomLogLevel": (226, "pi"),
    "RegisterCustomOpsLibrary_V2": (228, "ps"), "CastTypeInfoToOptionalTypeInfo": (250, "pp"),
    "GetOptionalContainedTypeInfo": (251, "pp"), "GetResizedStringTensorElementBuffer": (252, "pzzp"),
    "GetBuildInfoString": (254, ""), "SetDeterministicCompute": (273, "pb"),
    "CreateLoraAdapter": (280, "spp"), "ReleaseLoraAdapter": (282, "p"), "RunOptionsAddActiveLoraAdapter": (283, "pp"),
    "AddExternalInitializersFromFilesInMemory": (279, "ppppz"), "GetTensorSizeInBytes": (318, "pp"),
    "CreateMemoryInfo": (68, "siiip"), "MemoryInfoGetName": (71, "pp"),
    "MemoryInfoGetId": (72, "pp"), "MemoryInfoGetMemType": (73, "pp"), "MemoryInfoGetType": (74, "pp"),
    "ReleaseMemoryInfo": (94, "p"), "DisablePerSessionThreads": (120, "p"), "CreateAndRegisterAllocator": (144, "ppp"),
    "ReleaseArenaCfg": (157, "p"), "CreateArenaCfgV2": (164, "ppzp"),
    "CreateSparseTensorWithValuesAsOrtValue": (183, "pppzpzip"), "UseCooIndices": (184, "ppz"),
    "UseCsrIndices": (185, "ppzpz"), "GetSparseTensorFormat": (187, "pp"), "GetSparseTensorValuesTypeAndShape": (188, "pp"),
    "GetSparseTensorValues": (189, "pp"), "GetSparseTensorIndicesTypeShape": (190, "pip"),
    "GetSparseTensorIndices": (191, "pipp"), "CreateAndRegisterAllocatorV2": (259, "psppppz"),
    "SessionOptionsSetLoadCancellationFlag": (293, "pb"), "GetKeyValuePairs": (298, "pppp"), "GetEpDevices": (303, "ppp"),
    "SessionOptionsSetEpSelectionPolicy": (305, "pi"), "HardwareDevice_Type": (307, "p"),
    "HardwareDevice_VendorId": (308, "p"), "HardwareDevice_Vendor": (309, "p"), "HardwareDevice_DeviceId": (310, "p"),
    "HardwareDevice_Metadata": (311, "p"), "EpDevice_EpName": (312, "p"), "EpDevice_EpVendor": (313, "p"),
    "EpDevice_EpMetadata": (314, "p"), "EpDevice_EpOptions": (315, "p"), "EpDevice_Device": (316, "p"),
    "CreateMemoryInfo_V2": (320, "siiiizip"), "MemoryInfoGetDeviceMemType": (321, "p"), "MemoryInfoGetVendorId": (322, "p"),
    "EpDevice_MemoryInfo": (374, "pi"), "SessionGetMemoryInfoForInputs": (380, "ppz"),
    "SessionGetMemoryInfoForOutputs": (381, "ppz"), "SessionGetEpDeviceForInputs": (382, "ppz"), "CopyTensors": (386, "ppppz"),
    "GetNumHardwareDevices": (397, "pp"), "GetHardwareDevices": (398, "ppz"),
    "TensorTypeAndShape_HasShape": (390, "p"), "GetTensorElementTypeAndShapeDataReference": (414, "pppp"),
}
KINDS = {"p": ctypes.c_void_p, "s": ctypes.c_char_p, "i": ctypes.c_int, "z": ctypes.c_size_t, "q": ctypes.c_int64,
         "b": ctypes.c_bool}
PLAIN = {"GetErrorCode": ctypes.c_int, "GetErrorMessage": ctypes.c_char_p, "GetBuildInfoString": ctypes.c_char_p,
         "TensorTypeAndShape_HasShape": ctypes.c_bool, "GetKeyValuePairs": None, "HardwareDevice_Type": ctypes.c_int,
         "HardwareDevice_VendorId": ctypes.c_uint32, "HardwareDevice_Vendor": ctypes.c_char_p,
         "HardwareDevice_DeviceId": ctypes.c_uint32, "HardwareDevice_Metadata": ctypes.c_void_p,
         "EpDevice_EpName": ctypes.c_char_p, "EpDevice_EpVendor": ctypes.c_char_p, "EpDevice_EpMetadata": ctypes.c_void_p,
         "EpDevice_EpOptions": ctypes.c_void_p, "EpDevice_Device": ctypes.c_void_p, "EpDevice_MemoryInfo": ctypes.c_void_p,
         "MemoryInfoGetDeviceMemType": ctypes.c_int, "MemoryInfoGetVendorId": ctypes.c_uint32}


def _error(code, name, base=Exception):
    return code, type(name, (base,), {"__doc__": f"status {code} of the ABI", "__module__": __name__})


_ERRORS = dict(_error(code, name) for code, name in enumerate(
    ("Fail", "InvalidArgument", "NoSuchFile", "NoModel", "EngineError", "RuntimeException", "InvalidProtobuf", "ModelLoaded",
     "NotImplemented", "InvalidGraph", "EPFail", "ModelLoadCanceled", "ModelRequiresCompilation", "NotFound",
     "DeviceReset"), 1))
ERRORS = {error.__name__: error for error in _ERRORS.values()}
_WORDS = ("OK", "FAIL", "INVALID_ARGUMENT", "NO_SUCHFILE", "NO_MODEL", "ENGINE_ERROR", "RUNTIME_EXCEPTION",
          "INVALID_PROTOBUF", "MODEL_LOADED", "NOT_IMPLEMENTED", "INVALID_GRAPH", "EP_FAIL", "MODEL_LOAD_CANCELED",
          "MODEL_REQUIRES_COMPILATION", "NOT_FOUND", "DEVICE_RESET")


def _find_library():
    """The one that ORT_TOOLS_LIBRARY names, that lies in this package, that a checkout built, or that is installed."""
    here = pathlib.Path(__file__).resolve().parent
    places = [os.environ.get("ORT_TOOLS_LIBRARY"), here / "libonnxruntime.so.1",
              here.parents[1] / "build/lib/onnxruntime/libonnxruntime.so.1",
              "/usr/local/lib/ort-tools/onnxruntime/libonnxruntime.so.1", "/usr/lib/ort-tools/onnxruntime/libonnxruntime.so.1"]
    for place in filter(None, places):
        if os.path.exists(place):
            return str(place)
    raise ImportError("libonnxruntime.so.1 of ort-tools isn't there: `make dropin`, `make install`, or name it in "
                      "ORT_TOOLS_LIBRARY; looked at " + ", ".join(str(p) for p in places if p))


class _Base(ctypes.Structure):
    _fields_ = [("get_api", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)), ("get_version", ctypes.c_void_p)]


def _open():
    library = ctypes.CDLL(_find_library())
    library.OrtGetApiBase.restype = ctypes.POINTER(_Base)
    table = library.OrtGetApiBase().contents.get_api(API_VERSION)
    return library, ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))


_library, _table = _open()


def _function(name):
    slot, kinds = SLOTS[name]
    result = PLAIN.get(name, None if name.startswith(("Release", "ClearBound")) else ctypes.c_void_p)
    return ctypes.CFUNCTYPE(result, *(KINDS[k] for k in kinds))(_table[slot])


raw = _function # statuses are the caller's to look at


def _status_checked(name):
    function = _function(name)

    def call(*arguments):
        status = function(*arguments)
        if status:
            fail(status)
    return call


def fail(status):
    """Raises what a status says, and frees it."""
    code, text = get_code(status), get_text(status).decode(errors="replace")
    release_status(status)
    word = _WORDS[code] if code < len(_WORDS) else str(code)
    raise _ERRORS.get(code, ERRORS["Fail"])(f"[ONNXRuntimeError] : {code} : {word} : {text}")


get_code, get_text, release_status = (_function(n) for n in ("GetErrorCode", "GetErrorMessage", "ReleaseStatus"))
refer_to_tensor = _function("GetTensorElementTypeAndShapeDataReference") # not checked: it tells tensors from other values


class _Api:
    """api.Run(...): functions by name, made when they are first asked for."""

    def __getattr__(self, name):
        plain = name in PLAIN or name.startswith(("Release", "ClearBound"))
        function = _function(name) if plain else _status_checked(name)
        setattr(self, name, function)
        return function


api = _Api()


def make(function, *arguments):
    """What a call gives through its last argument: a pointer."""
    out = ctypes.c_void_p()
    function(*arguments, ctypes.byref(out))
    return out.value


def number(function, *arguments, kind=ctypes.c_size_t):
    """The same for a number."""
    out = kind()
    function(*arguments, ctypes.byref(out))
    return out.value


def text(function, *arguments):
    """A text in memory of the default allocator; None where there is none."""
    address = make(function, *arguments)
    if not address:
        return None
    value = ctypes.string_at(address).decode(errors="replace")
    api.AllocatorFree(allocator, address)
    return value


class Owned:
    """An object of the library, released with its last reference: copies of what holds it share it."""
    __slots__ = ("address", "_release")

    def __init__(self, address, release):
        self.address, self._release = address, release

    def __del__(self):
        self._release(self.address)

    def __reduce__(self):
        raise TypeError("cannot pickle what onnxruntime holds: sessions, bindings, options")


env = make(api.CreateEnv, 2, b"Default")
allocator = make(api.GetAllocatorWithDefaultOptions)
cpu_memory = make(api.CreateCpuMemoryInfo, 1, 0)
