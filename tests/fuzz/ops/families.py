"""families.py - every file that registers generators, and the operators that have none, with why."""
from . import (elementwise, flow, image, linear, ml, move, ms_attention, ms_early,  # noqa: F401
               ms_llm, ms_old, ms_quant, nchwc, preview, quant, reduce)
from .schemas import INTERNAL, registry

# Passes make these inside a session; no file may hold them (import refuses their domain).
WITHOUT = {row: "made inside a session, in no file" for row in registry() if row[0] == INTERNAL}
WITHOUT |= {("", name): "no peer runs it: tests/unit/test_opset.c holds it against its released form"
            for name in ("ConstantFill", "GivenTensorFill")}
