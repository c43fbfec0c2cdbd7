#!/usr/bin/env python3
"""check_python.py [MODELS] - the Python package beside onnxruntime: the same calls, the same answers.

Runs each check with both modules; then every model of MODELS with tensor inputs against its recorded outputs,
names, types and shapes beside onnxruntime's. Prints one line per difference and "N passed, N failed, 0 skipped".
"""
import json
import pathlib
import re
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
import ort_tools  # noqa: E402
from ort_tools import _abi  # noqa: E402

MADE = ROOT / "build/abi"
passed = failed = 0
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def check(ok, message):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    if not ok:
        print(f"FAIL {message}")


def open_session(ort, name, **options):
    chosen = ort.SessionOptions()
    chosen.log_severity_level = 4
    for key, value in options.items():
        setattr(chosen, key, value)
    return ort.InferenceSession(str(MADE / f"{name}.onnx"), chosen, providers=["CPUExecutionProvider"])


def describe(session):
    meta = session.get_modelmeta()
    return ([(n.name, n.type, n.shape) for n in session.get_inputs()],
            [(n.name, n.type, n.shape) for n in session.get_outputs()],
            [(n.name, n.type, n.shape) for n in session.get_overridable_initializers()],
            meta.producer_name, meta.graph_name, meta.domain, meta.description, meta.version, meta.custom_metadata_map)


def bound(ort):
    session = open_session(ort, "add")
    binding = session.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    return binding.copy_outputs_to_cpu(), [v.shape() for v in binding.get_outputs()]


def bound_in_place(ort):
    session, out = open_session(ort, "add"), np.zeros((2, 3), np.float32)
    binding = session.io_binding()
    binding.bind_input("x", "cpu", 0, np.float32, [2, 3], X.ctypes.data)
    binding.bind_output("y", "cpu", 0, np.float32, [2, 3], out.ctypes.data)
    session.run_with_iobinding(binding)
    return out


def values(ort):
    value = ort.OrtValue.ortvalue_from_numpy(X)
    empty = ort.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32)
    empty.update_inplace(X)
    return (value.shape(), value.data_type(), value.is_tensor(), value.has_value(), value.device_name(), value.numpy(),
            empty.numpy(), value.element_type())


def ort_values(ort):
    session = open_session(ort, "add")
    (y,) = session.run_with_ort_values(["y"], {"x": ort.OrtValue.ortvalue_from_numpy(X)})
    return y.numpy()


def terminated(ort):
    options = ort.RunOptions()
    options.terminate = True
    return open_session(ort, "add").run(None, {"x": X}, options)


def adapted(ort):
    """With an adapter, and without it in the next run."""
    session, adapter, options = open_session(ort, "lora"), ort.LoraAdapter(), ort.RunOptions()
    adapter.Load(str(MADE / "lora.onnx.onnx_adapter"))
    options.add_active_adapter(adapter)
    return [session.run(None, {"x": X}, options), session.run(None, {"x": X})]


def turned(ort):
    """Shapes, memory orders and names that change from run to run of one session; results that must not change with them."""
    session, kept = open_session(ort, "add"), []
    for feed in (X, X[:1], np.asfortranarray(X), X[::-1], np.zeros((0, 3), np.float32), np.tile(X, (2000, 1)), X):
        kept.append(session.run(None, {"x": feed})[0])
        kept.append(session.run(["y"], {"x": feed})[0])
    return kept


def released(ort):
    """A session goes with its last reference, also after runs."""
    import weakref
    session = open_session(ort, "add")
    session.run(None, {"x": X})
    gone = weakref.ref(session)
    del session
    return gone() is None


def copied(ort):
    """What one of two copies held is there for the other when it is gone."""
    import copy
    session, options = open_session(ort, "add"), ort.RunOptions()
    other = copy.copy(session)
    del session
    binding = other.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_output("y")
    other.run_with_iobinding(binding)
    return other.run(None, {"x": X}, options), [v.shape() for v in binding.get_outputs()]


def pickled(ort):
    import copy
    import pickle
    refused = []
    for function in (pickle.dumps, copy.deepcopy):
        try:
            function(open_session(ort, "add"))
        except TypeError as error:
            refused.append(str(error)[:13])
    return refused


def shared(ort):
    """numpy and a value over one protocol."""
    value = ort.OrtValue.ortvalue_from_numpy(X)
    return np.from_dlpack(value), ort.OrtValue.from_dlpack(X).numpy()


def asynchronous(ort):
    import threading
    done, kept = threading.Event(), []
    open_ = open_session(ort, "add", intra_op_num_threads=2)

    def callback(results, user_data, error):
        kept.extend([results, user_data, error])
        done.set()
    open_.run_async(["y"], {"x": X}, callback, "mine")
    done.wait(20)
    return kept


def profiled(ort):
    session = open_session(ort, "add", enable_profiling=True, profile_file_prefix=str(MADE / f"p_{ort.__name__}"))
    session.run(None, {"x": X})
    path = pathlib.Path(session.end_profiling())
    events = json.loads(path.read_text())
    path.unlink()
    return any(e.get("cat") == "Node" and e["args"]["op_name"] == "Add" for e in events)


def free_dims(ort):
    options = ort.SessionOptions()
    options.add_free_dimension_override_by_name("n", 4)
    options.add_session_config_entry("key", "value")
    return ort.InferenceSession(str(MADE / "add.onnx"), options).get_inputs()[0].shape, options.get_session_config_entry("key")


def sparse(ort):
    cpu = ort.OrtDevice.make("cpu", 0)
    coo = ort.SparseTensor.sparse_coo_from_numpy(np.array([3, 3]), X[0], np.array([0, 4, 8]), cpu)
    csr = ort.SparseTensor.sparse_csr_from_numpy(np.array([3, 3]), X[0], np.arange(3), np.arange(4), cpu)
    value = ort.OrtValue.ort_value_from_sparse_tensor(csr)
    view = csr.as_csrc_view()
    return (int(coo.format()), coo.dense_shape(), coo.data_type(), coo.device_name(), coo.values(), coo.as_coo_view().indices(),
            int(csr.format()), view.inner(), view.outer(), value.is_sparse_tensor(), value.data_type(),
            value.as_sparse_tensor().values())


def wrong_sparse(ort):
    cpu = ort.OrtDevice.make("cpu", 0)
    try:
        ort.SparseTensor.sparse_coo_from_numpy(np.array([3, 3]), X[0], np.array([0, 4, 8]), cpu).as_csrc_view()
    except Exception:
        return "refused"
    return "taken"


def told_of_devices(ort):
    session, device = open_session(ort, "add"), ort.get_ep_devices()[0]
    info = session.get_input_memory_infos()[0]
    own = ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
    return [(i.name, i.device_id, int(i.mem_type), int(i.device_mem_type), i.device_vendor_id) for i in (info, own)] + [
        int(own.allocator_type), device.ep_name, int(device.device.type), device.device.vendor_id,
        len(session.get_output_memory_infos()), [d.ep_name for d in session.get_input_epdevices()]]


def allocators(ort):
    """They are registered; a second time, or of a device that isn't there, is an error."""
    info = ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
    ort.create_and_register_allocator(info, ort.OrtArenaCfg({"max_mem": 1 << 20, "arena_extend_strategy": 0}))
    return open_session(ort, "add").run(None, {"x": X})


def copied_tensors(ort):
    source, target = ort.OrtValue.ortvalue_from_numpy(X), ort.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32)
    ort.copy_tensors([source], [target])
    return target.numpy()


def with_options(ort):
    return open_session(ort, "add", use_deterministic_compute=True, log_verbosity_level=1,
                        execution_mode=ort.ExecutionMode.ORT_PARALLEL).run(None, {"x": X})


def cancelled(ort):
    options = ort.SessionOptions()
    options.set_load_cancellation_flag(True)
    return ort.InferenceSession(str(MADE / "add.onnx"), options)


def given_providers(*arguments):
    return lambda ort: ort.InferenceSession(str(MADE / "add.onnx"), None, *arguments).get_providers()


def at_level(level):
    """Products with dequantized weights: in float, or at level 4 of what is rounded to 8 bits, which is another result."""
    def check_level(ort):
        options = ort.SessionOptions()
        options.log_severity_level = 4
        options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", level)
        session = ort.InferenceSession(str(MADE / "dequantized.onnx"), options, providers=["CPUExecutionProvider"])
        x = np.random.default_rng(7).normal(size=(3, 64)).astype(np.float32)
        (y,) = session.run(None, {"x": x})
        codes, scales = (numpy_helper.to_array(t) for t in onnx.load(str(MADE / "dequantized.onnx")).graph.initializer)
        exact = x @ (codes.astype(np.float32) * np.repeat(scales, 32, axis=0))
        return y, bool(abs(y - exact).max() > 1e-2), session.get_modelmeta().custom_metadata_map
    return check_level


def wrong_level(ort):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "high")
    try:
        ort.InferenceSession(str(MADE / "add.onnx"), options)
    except ort.capi.onnxruntime_pybind11_state.Fail if ort is onnxruntime else ort.Fail as error:
        return str(error)[:60]


def run(name, feed, names=None):
    return lambda ort: open_session(ort, name).run(names, feed)


CHECKS = {
    **{f"describe {n}": (lambda n: lambda ort: describe(open_session(ort, n)))(n)
       for n in ("add", "metadata", "defaults", "strings", "split", "zipmap", "optional", "rankless", "types", "denoted")},
    "run": run("add", {"x": X}), "run a list": run("add", {"x": X.tolist()}), "run a view": run("add", {"x": X[:, ::-1]}),
    "run some": run("several", {"x": X[:, :2]}, ["c", "a"]), "run strings": run("strings", {"x": np.array(["a", "", "ä"])}),
    "run objects": run("strings", {"x": np.array(["a", "bb"], object)}), "run a sequence": run("split", {"x": X[:, :2]}),
    "run maps": run("zipmap", {"x": X}), "run an optional": run("optional", {"x": X[0]}), "run no rows": run("add", {"x": X[:0]}),
    "run a default": run("defaults", {"x": X, "b": X[0]}), "wrong size": run("add", {"x": X[:, :2]}),
    "wrong rank": run("add", {"x": X[0]}), "wrong type": run("add", {"x": X.astype(np.float64)}),
    "wrong name": run("add", {"x": X, "z": X}), "missing input": run("add", {}), "wrong output": run("add", {"x": X}, ["z"]),
    "no such file": run("none", {"x": X}), "garbage": run("garbage", {}), "binding": bound, "binding in place": bound_in_place,
    "values": values, "values in a run": ort_values, "terminate": terminated, "run_async": asynchronous, "profile": profiled,
    "a copy": copied, "no copy": pickled, "dlpack": shared,
    "run without items": run("length", {"x": []}), "run items": run("length", {"x": [X, X[0]]}),
    "bind a wrong name": lambda ort: open_session(ort, "add").io_binding().bind_cpu_input("z", X),
    "device": lambda ort: [ort.OrtDevice.make("cpu", 0).device_type(), ort.OrtDevice.make("cpu", 0).device_id()],
    "sparse tensors": sparse, "a view of another format": wrong_sparse, "devices": told_of_devices, "allocators": allocators,
    "options of a session": with_options, "a cancelled session": cancelled,
    "providers with options": given_providers([("CPUExecutionProvider", {"a": 1})]),
    "options beside providers": given_providers(["CPUExecutionProvider"], [{}]),
    "too many options": given_providers(["CPUExecutionProvider"], [{}, {}]), "a provider of a number": given_providers([3]),
    "options twice": given_providers([("CPUExecutionProvider", {})], [{}]), "options of a number": given_providers(["x"], [1]),
    "level 1": at_level("1"), "level 4": at_level("4"), "no level": wrong_level,
    "adapter": adapted, "feeds that change": turned, "released": released,
    "free dims": free_dims, "providers": lambda ort: open_session(ort, "add").get_providers(),
    "bytes": lambda ort: ort.InferenceSession((MADE / "add.onnx").read_bytes()).run(None, {"x": X}),
    "copy_tensors": lambda ort: copied_tensors(ort_tools),  # onnxruntime copies between devices alone
    "path": lambda ort: ort.InferenceSession(MADE / "add.onnx").run(None, {"x": X}),
}


def answer(function, ort):
    try:
        return function(ort)
    except Exception as error: # its name and words are the answer
        text = str(error).replace("output name:z", "output name: z") # the module's own words lack the space
        words = re.sub(r"(MODEL_LOAD_CANCELED :|failed:|Status Message:|Exception caught:|Protobuf parsing failed\.).*", r"\1", text, flags=re.S)
        return type(error).__name__, words


def same(a, b, rtol=1e-3, atol=2e-4):
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        return a.tolist() == b.tolist() if a.dtype.kind in "OUSb" else np.allclose(a, b, rtol, atol, equal_nan=True)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(same(x, y, rtol, atol) for x, y in zip(a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k], rtol, atol) for k in a)
    if isinstance(a, float) and isinstance(b, float):
        return bool(np.isclose(a, b, rtol, atol))
    return a == b


def check_slots():
    """The numbers that the package has are those of the table."""
    rows = dict(re.findall(r"^SLOT\((\d+), \d+, [\w *]+, (\w+),", (ROOT / "abi/slots.def").read_text(), re.M))
    names = {name: int(slot) for slot, name in rows.items()}
    for name, (slot, kinds) in _abi.SLOTS.items():
        check(names.get(name, slot) == slot, f"{name} is slot {names.get(name)}, not {slot}")


def tensors(folder, prefix, count):
    found = []
    for i in range(count):
        path = next((p for p in (folder / f"{prefix}_{i}.pb", folder / f"{prefix}{i}.pb") if p.exists()), None)
        if path is None:
            return None
        try:
            found.append(numpy_helper.to_array(onnx.load_tensor(str(path))))
        except Exception: # a sequence or a map
            return None
    return found


def named(nodes):
    """Exporters call every open axis '?': a name that names nothing isn't kept here."""
    return [(name, kind, [None if dim == "?" else dim for dim in shape]) for name, kind, shape in nodes]


def check_model(folder):
    model, data = folder / "model.onnx", folder / "test_data_set_0"
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level, options.log_severity_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL, 4
    ours, theirs = ort_tools.InferenceSession(str(model)), onnxruntime.InferenceSession(str(model), options)
    check(named(describe(ours)[0]) == named(describe(theirs)[0]), f"{folder.name}: inputs differ")
    check([o[:2] for o in describe(ours)[1]] == [o[:2] for o in describe(theirs)[1]], f"{folder.name}: outputs differ")
    inputs = tensors(data, "input", len(ours.get_inputs()))
    exact = ROOT / "tests/models/exact" / folder.name # of values recorded where byte kernels saturate
    exact = exact / "test_data_set_0" if (exact / "test_data_set_0").is_dir() else exact
    expected = tensors(exact if exact.is_dir() else data, "output", len(ours.get_outputs()))
    if inputs is None or expected is None or any("tensor(" != n.type[:7] for n in ours.get_inputs() + ours.get_outputs()):
        return
    feed = {node.name: value for node, value in zip(ours.get_inputs(), inputs)}
    results = ours.run(None, feed)
    meta = json.loads((folder / "meta.json").read_text())
    check(all(same(r, e, meta["rtol"], meta["atol"]) for r, e in zip(results, expected)), f"{folder.name}: values differ")


def main():
    check_slots()
    for name, function in CHECKS.items():
        ours, theirs = answer(function, ort_tools), answer(function, onnxruntime)
        check(same(ours, theirs), f"{name}:\n    ours   {ours}\n    theirs {theirs}")
    for folder in sorted(pathlib.Path(sys.argv[1]).iterdir()) if len(sys.argv) > 1 else ():
        if (folder / "test_data_set_0").is_dir() and (folder / "model.onnx").exists():
            check_model(folder)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed != 0


sys.exit(main())
