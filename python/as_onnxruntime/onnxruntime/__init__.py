"""ort_tools under the name onnxruntime, for programs that start others."""
from ort_tools import as_onnxruntime

as_onnxruntime.install()
