"""Sessions, their options and bindings, with the names and behaviour of onnxruntime's Python module."""
import collections.abc
import ctypes
import enum
import functools
import operator
import os
import threading
import warnings

import numpy as np

from . import _abi, _devices, _run, _values
from ._abi import Owned, allocator, api, make, number, text
from ._missing import Named, attribute
from ._values import Handle, OrtValue, check_device, from_python, to_python

PROVIDERS = ["CPUExecutionProvider"]


class GraphOptimizationLevel(enum.IntEnum):
    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(enum.IntEnum):
    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


class NodeArg(Named):
    """An input or output of a model: name, type and shape."""

    def __init__(self, name, kind, shape):
        self.name, self.type, self.shape = name, kind, shape

    def __repr__(self):
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"

    __str__ = __repr__


class ModelMetadata(Named):
    """What a model says of itself."""

    def __init__(self, session):
        metadata = make(api.SessionGetModelMetadata, session)
        try:
            self.producer_name = text(api.ModelMetadataGetProducerName, metadata, allocator)
            self.graph_name = text(api.ModelMetadataGetGraphName, metadata, allocator)
            self.domain = text(api.ModelMetadataGetDomain, metadata, allocator)
            self.description = text(api.ModelMetadataGetDescription, metadata, allocator)
            self.graph_description = text(api.ModelMetadataGetGraphDescription, metadata, allocator)
            self.version = number(api.ModelMetadataGetVersion, metadata, kind=ctypes.c_int64)
            self.custom_metadata_map = {key: text(api.ModelMetadataLookupCustomMetadataMap, metadata, allocator, key.encode())
                                        for key in _keys(metadata)}
        finally:
            api.ReleaseModelMetadata(metadata)


def _keys(metadata):
    keys, count = ctypes.c_void_p(), ctypes.c_int64()
    api.ModelMetadataGetCustomMetadataMapKeys(metadata, allocator, ctypes.byref(keys), ctypes.byref(count))
    names = []
    for i in range(count.value):
        address = ctypes.c_void_p.from_address(keys.value + i * ctypes.sizeof(ctypes.c_void_p)).value
        names.append(ctypes.string_at(address).decode())
        api.AllocatorFree(allocator, address)
    if keys.value:
        api.AllocatorFree(allocator, keys.value)
    return names


def _checked(owner, name, old, new):
    """A value in place of another, of the same kind; a name that isn't there is an error, as it is with onnxruntime."""
    if isinstance(old, (str, os.PathLike)):
        return os.fspath(new)
    if isinstance(old, enum.IntEnum):
        if not isinstance(new, int):
            raise TypeError(f"{owner}.{name} is of {type(old).__name__}, not {new!r}")
        return type(old)(new)
    return bool(new) if isinstance(old, bool) else operator.index(new)


class SessionOptions(Named):
    """Kept here, and told to the library when a session is made."""

    def __init__(self):
        self.__dict__.update(
            graph_optimization_level=GraphOptimizationLevel.ORT_ENABLE_ALL, execution_mode=ExecutionMode.ORT_SEQUENTIAL,
            execution_order=ExecutionOrder.DEFAULT, intra_op_num_threads=0, inter_op_num_threads=0,
            enable_cpu_mem_arena=True, enable_mem_pattern=True, enable_mem_reuse=True, use_per_session_threads=True,
            enable_profiling=False, use_deterministic_compute=False, profile_file_prefix="onnxruntime_profile_",
            optimized_model_filepath="", logid="", log_severity_level=-1, log_verbosity_level=0, _cancelled=False,
            _entries={}, _calls=[], _keep=[])

    def __setattr__(self, name, value):
        if name not in self.__dict__:
            raise attribute("SessionOptions", name)
        self.__dict__[name] = _checked("SessionOptions", name, self.__dict__[name], value)

    def set_load_cancellation_flag(self, value):
        self.__dict__["_cancelled"] = bool(value)

    def set_provider_selection_policy(self, policy):
        """The processor is all there is to choose."""
        self._calls.append(("SessionOptionsSetEpSelectionPolicy", int(_devices.OrtExecutionProviderDevicePolicy(policy))))

    def add_session_config_entry(self, key, value):
        self._entries[key] = value

    def get_session_config_entry(self, key):
        if key not in self._entries:
            raise RuntimeError(f"SessionOptions does not have configuration with key: {key}")
        return self._entries[key]

    def add_free_dimension_override_by_name(self, name, size):
        self._calls.append(("AddFreeDimensionOverrideByName", name.encode(), size))

    def add_free_dimension_override_by_denotation(self, denotation, size):
        self._calls.append(("AddFreeDimensionOverride", denotation.encode(), size))

    def add_initializer(self, name, value):
        handle = from_python(value)
        self._keep.append(handle)
        self._calls.append(("AddInitializer", name.encode(), handle.address))

    def add_external_initializers(self, names, values):
        for name, value in zip(names, values):
            self.add_initializer(name, value)

    def add_external_initializers_from_files_in_memory(self, names, buffers, lengths):
        data = [ctypes.create_string_buffer(bytes(b), n) for b, n in zip(buffers, lengths)]
        files = (ctypes.c_char_p * len(names))(*(str(n).encode() for n in names))
        blocks = (ctypes.c_void_p * len(data))(*(ctypes.addressof(d) for d in data))
        sizes = (ctypes.c_size_t * len(data))(*lengths)
        self._keep.append((data, files, blocks, sizes))
        self._calls.append(("AddExternalInitializersFromFilesInMemory", files, blocks, sizes, len(names)))

    def register_custom_ops_library(self, path):
        self._calls.append(("RegisterCustomOpsLibrary_V2", os.fsencode(path)))

    def add_provider(self, name, options):
        _check_providers([name])

    def has_providers(self):
        return False

    def _make(self):
        options = make(api.CreateSessionOptions)
        try:
            self._tell(options)
        except BaseException:
            api.ReleaseSessionOptions(options)
            raise
        return options

    def _tell(self, options):
        api.SetSessionGraphOptimizationLevel(options, int(self.graph_optimization_level))
        api.SetSessionExecutionMode(options, int(self.execution_mode))
        api.SetIntraOpNumThreads(options, self.intra_op_num_threads)
        api.SetInterOpNumThreads(options, self.inter_op_num_threads)
        (api.EnableMemPattern if self.enable_mem_pattern else api.DisableMemPattern)(options)
        (api.EnableCpuMemArena if self.enable_cpu_mem_arena else api.DisableCpuMemArena)(options)
        if self.enable_profiling:
            api.EnableProfiling(options, os.fsencode(self.profile_file_prefix))
        if self.optimized_model_filepath:
            api.SetOptimizedModelFilePath(options, os.fsencode(self.optimized_model_filepath))
        if self.logid:
            api.SetSessionLogId(options, self.logid.encode())
        if self.log_severity_level >= 0:
            api.SetSessionLogSeverityLevel(options, int(self.log_severity_level))
        api.SetSessionLogVerbosityLevel(options, self.log_verbosity_level)
        api.SetDeterministicCompute(options, self.use_deterministic_compute)
        api.SessionOptionsSetLoadCancellationFlag(options, self._cancelled)
        if not self.use_per_session_threads:
            api.DisablePerSessionThreads(options)
        for key, value in self._entries.items():
            api.AddSessionConfigEntry(options, key.encode(), value.encode())
        for name, *arguments in self._calls:
            getattr(api, name)(options, *arguments)


class LoraAdapter(Named):
    """Weights that runs take in place of the defaults of a model's inputs."""

    def __init__(self):
        self._adapter = None

    def Load(self, path):
        self._adapter = Owned(make(api.CreateLoraAdapter, os.fsencode(path), None), api.ReleaseLoraAdapter)


class RunOptions(Named):
    """Options of one run; `terminate` may be set while it goes on."""

    def __init__(self):
        owned = Owned(make(api.CreateRunOptions), api.ReleaseRunOptions)
        self.__dict__.update(_owned=owned, _options=owned.address, terminate=False, logid="", log_severity_level=-1, log_verbosity_level=0,
                             only_execute_path_to_fetches=False, training_mode=False, _entries={})

    def __setattr__(self, name, value):
        if name not in self.__dict__:
            raise attribute("RunOptions", name)
        self.__dict__[name] = _checked("RunOptions", name, self.__dict__[name], value)
        if name == "terminate":
            (api.RunOptionsSetTerminate if value else api.RunOptionsUnsetTerminate)(self._options)
        elif name == "logid":
            api.RunOptionsSetRunTag(self._options, value.encode())
        elif name == "log_severity_level":
            api.RunOptionsSetRunLogSeverityLevel(self._options, int(value))
        elif name == "log_verbosity_level":
            api.RunOptionsSetRunLogVerbosityLevel(self._options, int(value))

    def add_run_config_entry(self, key, value):
        api.AddRunConfigEntry(self._options, key.encode(), value.encode())
        self._entries[key] = value

    def get_run_config_entry(self, key):
        return self._entries[key]

    def add_active_adapter(self, adapter):
        if adapter._adapter is None:
            raise RuntimeError("the adapter isn't loaded: Load(path) comes first")
        api.RunOptionsAddActiveLoraAdapter(self._options, adapter._adapter.address)


def _is_pair(provider):
    return isinstance(provider, tuple) and len(provider) == 2 and isinstance(provider[0], str) and isinstance(provider[1], dict)


def _paired(providers, provider_options):
    """(name, options) of each, or an error for what isn't."""
    for what, given in (("providers", providers), ("provider_options", provider_options)):
        if given is not None and not isinstance(given, collections.abc.Sequence):
            raise ValueError(f"'{what}' should be a sequence.")
    if provider_options is None:
        pairs = [(p, {}) if isinstance(p, str) else p for p in providers]
        if not all(map(_is_pair, pairs)):
            raise ValueError("'providers' values must be either strings or (string, dict) tuples.")
        return pairs
    if len(providers) != len(provider_options):
        raise ValueError("'providers' and 'provider_options' should be the same length if both are given.")
    if not all(isinstance(p, str) for p in providers):
        raise ValueError("Only string values for 'providers' are supported if 'provider_options' is given.")
    if not all(isinstance(o, dict) for o in provider_options):
        raise ValueError("'provider_options' values must be dicts.")
    return list(zip(providers, provider_options))


def check_and_normalize_provider_args(providers, provider_options, available_provider_names, stacklevel=2):
    """Names and options of providers as texts; warns of those that aren't there and of those that are named twice."""
    found = {}
    for name, options in _paired(providers, provider_options) if providers is not None else ():
        if name not in available_provider_names:
            warnings.warn(f"Specified provider '{name}' is not in available provider names."
                          f"Available providers: '{', '.join(available_provider_names)}'", stacklevel=stacklevel)
        if name in found:
            warnings.warn(f"Duplicate provider '{name}' encountered, ignoring.", stacklevel=stacklevel)
            continue
        found[name] = {str(key): str(value) for key, value in options.items()}
    return list(found), list(found.values())


def _check_providers(providers, provider_options=None):
    check_and_normalize_provider_args(providers, provider_options, PROVIDERS, stacklevel=5)


@functools.cache
def _texts(count):
    return ctypes.c_char_p * max(count, 1)


@functools.cache
def _pointers(count):
    return ctypes.c_void_p * max(count, 1)


def _field(key, content):
    """A field of a protobuf message: bytes, or a small number."""
    return bytes([key << 3, content]) if isinstance(content, int) else bytes([key << 3 | 2, len(content)]) + content


@functools.cache
def _empty_sequence(element):
    """The ABI makes no sequence without items, so a model of one node does: SequenceEmpty of 'tensor(float)'."""
    number_ = _values.element_of(element[len("tensor("):-1])
    kind = _field(4, _field(1, _field(1, _field(1, number_))))
    dtype = _field(1, b"dtype") + _field(3, number_) + bytes([0xa0, 1, 2]) # its kind, field 20: a number
    node = _field(2, b"y") + _field(4, b"SequenceEmpty") + _field(5, dtype)
    graph = _field(1, node) + _field(2, b"empty") + _field(12, _field(1, b"y") + _field(2, kind))
    model = _field(1, 8) + _field(7, graph) + _field(8, _field(1, b"") + _field(2, 17))
    return InferenceSession(model)._run(None, {}, None)[0]


class InferenceSession(Named):
    """A model made ready to run."""

    def __init__(self, path_or_bytes, sess_options=None, providers=None, provider_options=None, **kwargs):
        self._options = sess_options if sess_options is not None else SessionOptions()
        try:
            _check_providers(providers, provider_options)
        except ValueError as error: # said, and no reason not to run: as onnxruntime falls back
            print("*************** EP Error ***************", f"EP Error {error} when using {providers}",
                  f"Falling back to {PROVIDERS} and retrying.", "****************************************", sep="\n")
        options = self._options._make()
        try:
            if isinstance(path_or_bytes, (str, os.PathLike)):
                self._model_path = os.fspath(path_or_bytes)
                self._session = make(api.CreateSession, _abi.env, os.fsencode(path_or_bytes), options)
            elif isinstance(path_or_bytes, (bytes, bytearray, memoryview)):
                data = bytes(path_or_bytes)
                self._session = make(api.CreateSessionFromArray, _abi.env, data, len(data), options)
            else:
                raise TypeError(f"Unable to load from type '{type(path_or_bytes)}'")
        finally:
            api.ReleaseSessionOptions(options)
        self._owned = Owned(self._session, api.ReleaseSession)
        self._inputs = self._describe("Input")
        self._outputs = self._describe("Output")
        self._initializers = self._describe("OverridableInitializer")
        self._required = [i.name for i in self._inputs]
        self._elements = {i.name: _values.DTYPES.get(_values.NAMES.index(i.type[7:-1])) for i in self._inputs + self._initializers
                          if i.type.startswith("tensor(")}
        self._sequences = {i.name: i.type[4:-1] for i in self._inputs if i.type.startswith("seq(tensor(")}
        self._plans = {}
        self._names = {n.name: n.name.encode() for n in self._inputs + self._outputs + self._initializers}

    def _describe(self, side):
        found = []
        for i in range(number(getattr(api, f"SessionGet{side}Count"), self._session)):
            info = make(getattr(api, f"SessionGet{side}TypeInfo"), self._session, i)
            found.append(NodeArg(text(getattr(api, f"SessionGet{side}Name"), self._session, i, allocator),
                                 *_values.describe(info)))
            api.ReleaseTypeInfo(info)
        return found

    def get_inputs(self):
        return list(self._inputs)

    def get_outputs(self):
        return list(self._outputs)

    def get_overridable_initializers(self):
        return list(self._initializers)

    def get_modelmeta(self):
        return ModelMetadata(self._session)

    def get_session_options(self):
        return self._options

    def get_providers(self):
        return list(PROVIDERS)

    def get_provider_options(self):
        return {name: {} for name in PROVIDERS}

    def set_providers(self, providers=None, provider_options=None):
        _check_providers(providers, provider_options)

    def disable_fallback(self):
        """There is nothing to fall back to."""

    def enable_fallback(self):
        """The same."""

    def get_tuning_results(self):
        return []

    def get_input_memory_infos(self):
        return _devices.listed(api.SessionGetMemoryInfoForInputs, self._session, len(self._inputs), _devices.OrtMemoryInfo._of)

    def get_output_memory_infos(self):
        return _devices.listed(api.SessionGetMemoryInfoForOutputs, self._session, len(self._outputs),
                               _devices.OrtMemoryInfo._of)

    def get_input_epdevices(self):
        return _devices.listed(api.SessionGetEpDeviceForInputs, self._session, len(self._inputs), _devices.OrtEpDevice)

    def create_ortvalue_from_shape_and_type(self, shape, element_type, device_type="cpu", device_id=0):
        return OrtValue.ortvalue_from_shape_and_type(shape, element_type, device_type, device_id)

    def end_profiling(self):
        return text(api.SessionEndProfiling, self._session, allocator)

    def get_profiling_start_time_ns(self):
        return number(api.SessionGetProfilingStartTimeNs, self._session, kind=ctypes.c_uint64)

    def io_binding(self):
        return IOBinding(self)

    def _name(self, name):
        return self._names.get(name) or str(name).encode()

    def _run(self, output_names, feeds, run_options):
        """Handles of the outputs; `feeds`: handles by name."""
        names = [self._name(n) for n in feeds]
        outs = [self._name(n) for n in output_names] if output_names else [self._names[o.name] for o in self._outputs]
        results = _pointers(len(outs))()
        api.Run(self._session, run_options._options if run_options else None, _texts(len(names))(*names),
                _pointers(len(names))(*[h.address for h in feeds.values()]), len(names), _texts(len(outs))(*outs),
                len(outs), results)
        return [Handle(address) for address in results[:len(outs)]]

    def _feeds(self, feed):
        missing = [name for name in self._required if name not in feed]
        if missing:
            raise ValueError(f"Required inputs ({missing}) are missing from input feed ({list(feed)}).")
        return {name: self._feed(name, value) for name, value in feed.items() if value is not None}

    def _feed(self, name, value):
        """Numbers in lists take the element type of the input, arrays have one of their own."""
        if isinstance(value, np.ndarray):
            return _values.from_numpy(value)
        if isinstance(value, (list, tuple)) and not value and name in self._sequences:
            return _empty_sequence(self._sequences[name])
        if isinstance(value, (list, tuple, int, float, bool, np.generic)) and self._elements.get(name):
            return _values.from_numpy(np.asarray(value, self._elements[name]))
        return from_python(value)

    def _plan(self, key, output_names, feed):
        missing = [name for name in self._required if name not in feed]
        if missing:
            raise ValueError(f"Required inputs ({missing}) are missing from input feed ({list(feed)}).")
        names = list(feed)
        outputs = [self._name(n) for n in output_names] if output_names else [self._names[o.name] for o in self._outputs]
        plan = _run.Plan(self._session, names, [self._name(n) for n in names], outputs)
        if len(self._plans) < 100:
            self._plans[key] = plan
        return plan

    def run(self, output_names, input_feed, run_options=None):
        key = (tuple(output_names) if output_names else None, *input_feed)
        plan = self._plans.get(key) or self._plan(key, output_names, input_feed)
        options = run_options._options if run_options else None
        try:
            return plan.run(input_feed.values(), options, self._feed)
        except _run.Absent:
            return [to_python(handle) for handle in self._run(output_names, self._feeds(input_feed), run_options)]

    def run_with_ort_values(self, output_names, input_dict_ort_values, run_options=None):
        feeds = {name: value._handle for name, value in input_dict_ort_values.items()}
        return [OrtValue(handle) for handle in self._run(output_names, feeds, run_options)]

    def run_async(self, output_names, input_feed, callback, user_data, run_options=None):
        feeds = self._feeds(input_feed)

        def work():
            try:
                results, error = [to_python(h) for h in self._run(output_names, feeds, run_options)], ""
            except Exception as failure: # the callback is told, whatever it was
                results, error = [], str(failure)
            callback(results, user_data, error)
        threading.Thread(target=work, daemon=True).start()

    def run_with_iobinding(self, iobinding, run_options=None):
        api.RunWithBinding(self._session, run_options._options if run_options else None, iobinding._binding)


class IOBinding(Named):
    """Inputs and outputs of a session, bound between runs."""

    def __init__(self, session):
        self._owner = session
        self._keep, self._outputs = {}, []
        self._owned = Owned(make(api.CreateIoBinding, session._session), api.ReleaseIoBinding)
        self._binding = self._owned.address

    def _bind(self, function, name, handle):
        function(self._binding, name.encode(), handle.address)
        self._keep[function, name] = handle

    def bind_cpu_input(self, name, array):
        if name not in self._owner._names:
            raise RuntimeError(f"Failed to find NodeArg with name: {name} in the def list")
        self._bind(api.BindInput, name, from_python(array))

    def bind_ortvalue_input(self, name, value):
        self._bind(api.BindInput, name, value._handle)

    def bind_input(self, name, device_type, device_id, element_type, shape, buffer_ptr):
        check_device(device_type)
        self._bind(api.BindInput, name, _on_memory(element_type, shape, buffer_ptr))

    def bind_output(self, name, device_type="cpu", device_id=0, element_type=None, shape=None, buffer_ptr=None):
        check_device(device_type)
        if buffer_ptr is None:
            api.BindOutputToDevice(self._binding, name.encode(), _abi.cpu_memory)
        else:
            self._bind(api.BindOutput, name, _on_memory(element_type, shape, buffer_ptr))

    def bind_ortvalue_output(self, name, value):
        self._bind(api.BindOutput, name, value._handle)

    def synchronize_inputs(self):
        """All memory is the processor's."""

    def synchronize_outputs(self):
        """The same."""

    def get_outputs(self):
        values, count = ctypes.c_void_p(), ctypes.c_size_t()
        api.GetBoundOutputValues(self._binding, allocator, ctypes.byref(values), ctypes.byref(count))
        found = [OrtValue(Handle(a)) for a in (ctypes.c_void_p * count.value).from_address(values.value)] if count.value else []
        if values.value:
            api.AllocatorFree(allocator, values.value)
        return found

    def copy_outputs_to_cpu(self):
        return [value.numpy() for value in self.get_outputs()]

    def clear_binding_inputs(self):
        api.ClearBoundInputs(self._binding)

    def clear_binding_outputs(self):
        api.ClearBoundOutputs(self._binding)


SessionIOBinding = IOBinding


def _on_memory(element_type, shape, address):
    element = _values.element_of(element_type)
    size = _values.DTYPES[element].itemsize
    for dim in shape:
        size *= dim
    return Handle(make(api.CreateTensorWithDataAsOrtValue, _abi.cpu_memory, address, size, _values.shape_array(shape),
                       len(shape), element))


def get_available_providers():
    return list(PROVIDERS)


get_all_providers = get_available_providers


def get_device():
    return "CPU"


def get_build_info():
    return api.GetBuildInfoString().decode()


def get_version_string():
    return _abi.VERSION


def set_default_logger_severity(severity):
    api.UpdateEnvWithCustomLogLevel(_abi.env, int(severity))


def set_default_logger_verbosity(level):
    """Messages have no further levels."""


def preload_dlls(cuda=True, cudnn=True, msvc=True, directory=None):
    """There is nothing to load before a session is made."""


def set_seed(seed):
    """Random operators without a seed of their own draw anew in each run, which a program should know."""
    warnings.warn("set_seed has no effect in ort-tools: give the model's random operators a seed", stacklevel=2)


def has_collective_ops():
    return False


def disable_telemetry_events():
    """Nothing is sent anywhere."""


enable_telemetry_events = disable_telemetry_events
