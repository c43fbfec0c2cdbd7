#!/usr/bin/env python3
"""check_python_names.py - every name of onnxruntime's Python interface is there, or raises with its name and what helps.

Compares the lists of names of the wheel's module, of its modules that programs import, and of an object of each class
with ours. What ours lacks must stand in ort_tools/_missing.py, say so when it is asked for, and not be there; what
stands in neither is silently absent, and fails. Prints one line per finding and "N passed, N failed, 0 skipped".
"""
import importlib
import inspect
import pathlib
import pkgutil
import subprocess
import sys

import numpy as np
import onnxruntime
from onnxruntime.capi import onnxruntime_inference_collection, onnxruntime_pybind11_state

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
import ort_tools  # noqa: E402
from ort_tools import _missing, as_onnxruntime  # noqa: E402

# What its modules import or leave behind, and no part of its interface.
LEFT_OVER = {"contextlib", "cuda_version", "package_name", "version", "import_capi_exception", "onnxruntime_validation",
             "Any", "C", "Callable", "IntEnum", "Sequence", "annotations", "collections", "np", "os", "typing", "warnings",
             "weakref", "GetInitializerLocationFunc", "GetInitializerLocationWrapperFunc", "get_ort_device_type",
             "get_vendor_id_for_device_type", "make_get_initializer_location_func_wrapper"}
MODEL = str(ROOT / "build/abi/add.onnx")
passed = failed = 0


def check(ok, message):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    if not ok:
        print(f"FAIL {message}")


def names_of(thing):
    return {name for name in dir(thing) if not name.startswith("_")}


def raised(function):
    try:
        function()
    except (AttributeError, ImportError) as error:
        return str(error)
    return None


def check_names(owner, theirs, ours):
    """Names of a module or an object; `owner` is its name in _missing.py."""
    table = _missing.MISSING.get(owner, {})
    for name in sorted(names_of(theirs) - LEFT_OVER):
        said = raised(lambda: getattr(ours, name))
        if said is None:
            check(name not in table, f"{owner}.{name} is there, and called missing")
        else:
            check(name in table, f"{owner}.{name} is silently absent: {said}")
            check(name in said and (table.get(name) or "-") in said, f"{owner}.{name}: {said!r} lacks its name or what helps")
    for name in sorted(set(table) - names_of(theirs)):
        check(False, f"{owner}.{name}: called missing, and onnxruntime doesn't have it")


def objects(ort, device):
    """One of each class that programs hold."""
    session, x = ort.InferenceSession(MODEL, providers=["CPUExecutionProvider"]), np.zeros((2, 3), np.float32)
    sparse = ort.SparseTensor.sparse_coo_from_numpy(np.array([3, 3]), np.ones(2, np.float32), np.array([0, 4]), device)
    found = [session, ort.SessionOptions(), ort.RunOptions(), ort.OrtValue.ortvalue_from_numpy(x), session.io_binding(),
             session.get_modelmeta(), session.get_inputs()[0], sparse, device, ort.LoraAdapter(), ort.get_ep_devices()[0],
             ort.get_ep_devices()[0].device, session.get_input_memory_infos()[0], ort.OrtArenaCfg(0, -1, -1, -1)]
    return {type(o).__name__: o for o in found}


def members(enumeration):
    return {name: int(value) for name, value in enumeration.__members__.items()}


def check_enumerations(state):
    for name, theirs in vars(onnxruntime_pybind11_state).items():
        if inspect.isclass(theirs) and hasattr(theirs, "__members__") and name not in _missing.MISSING[_missing.STATE]:
            check(members(getattr(state, name)) == members(theirs), f"{name}: {members(getattr(state, name))}")


def check_exceptions():
    for name, theirs in vars(onnxruntime_pybind11_state).items():
        if inspect.isclass(theirs) and issubclass(theirs, Exception):
            check(issubclass(getattr(ort_tools, name), Exception), f"{name} is no exception")


def check_modules():
    """In a process of its own, where they aren't imported yet: each is there, or is refused with what helps."""
    names = [m.name for m in pkgutil.iter_modules(onnxruntime.__path__, "onnxruntime.")]
    names += [m.name for m in pkgutil.iter_modules(importlib.import_module("onnxruntime.capi").__path__, "onnxruntime.capi.")]
    code = ("import importlib\n"
            f"for name in {names}:\n"
            "    try: print(name, importlib.import_module(name).__name__)\n"
            "    except ImportError as error: print(name, error)\n")
    run = subprocess.run([sys.executable, "-m", "ort_tools.as_onnxruntime", "-c", code], capture_output=True, text=True,
                         env={"PYTHONPATH": str(ROOT / "python")}, check=False)
    check(run.returncode == 0, f"modules: {run.stderr[-300:]}")
    said = dict(line.split(" ", 1) for line in run.stdout.splitlines())
    for name in names:
        remedy = _missing.MODULES.get(name.partition(".")[2])
        there = name.partition(".")[2].startswith("capi") and not remedy
        check(said.get(name, "") and (there or remedy and remedy in said[name] and name in said[name]),
              f"{name}: {said.get(name)!r}")


def check_command():
    """python -m ort_tools.as_onnxruntime: what is no program is told in a line, with status 2."""
    for arguments, status, said in (((), 2, "-m MODULE"), (("-h",), 0, "-m MODULE"), (("-x",), 2, "no option '-x'"),
                                    (("-c",), 2, "-c takes code"), (("-m",), 2, "-m takes a module"),
                                    (("none.py",), 2, "can't open 'none.py'"),
                                    (("-c", "import sys; print(sys.argv)", "a"), 0, "['-c', 'a']")):
        run = subprocess.run([sys.executable, "-m", "ort_tools.as_onnxruntime", *arguments], capture_output=True, text=True,
                             env={"PYTHONPATH": str(ROOT / "python")}, check=False)
        text = run.stdout if status == 0 else run.stderr
        check(run.returncode == status and said in text and "Traceback" not in run.stderr,
              f"as_onnxruntime {arguments}: {run.returncode}, {text!r}")


def check_options():
    """A name that isn't there can't be set, nor a value of another kind."""
    for ort in (onnxruntime, ort_tools):
        for make, name, value, error in ((ort.SessionOptions, "intra_threads", 2, AttributeError),
                                         (ort.SessionOptions, "intra_op_num_threads", "2", TypeError),
                                         (ort.RunOptions, "terminated", True, AttributeError),
                                         (ort.RunOptions, "logid", 3, TypeError)):
            try:
                setattr(make(), name, value)
                check(False, f"{ort.__name__}: {name} = {value!r} is taken")
            except error:
                check(True, "")


def main():
    as_onnxruntime.install()
    capi = ort_tools.capi
    check_names("", onnxruntime, ort_tools)
    check_names(_missing.STATE, onnxruntime_pybind11_state, capi.onnxruntime_pybind11_state)
    check_names("", type("names", (), dict.fromkeys(names_of(onnxruntime_inference_collection) | set(_missing.MISSING[""]))),
                capi.onnxruntime_inference_collection)
    theirs = objects(onnxruntime, onnxruntime.OrtDevice.make("cpu", 0))
    ours = objects(ort_tools, ort_tools.OrtDevice.make("cpu", 0))
    check(theirs.keys() == ours.keys(), f"classes {theirs.keys() ^ ours.keys()}")
    for name in theirs.keys() & ours.keys():
        check_names(name, theirs[name], ours[name])
    check_enumerations(capi.onnxruntime_pybind11_state)
    check_exceptions()
    check_modules()
    check_command()
    check_options()
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed != 0


sys.exit(main())
