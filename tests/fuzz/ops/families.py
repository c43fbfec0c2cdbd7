"""families.py - every file that registers generators."""
from . import elementwise, flow, image, linear, ml, move, quant, reduce  # noqa: F401
