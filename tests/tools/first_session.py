"""first_session.py PROGRAM [ARGUMENT...] - runs a Python program that uses onnxruntime; the file that READY_FILE
names is made when its first session is ready, with the seconds of the monotonic clock."""
import functools
import os
import runpy
import sys
import time

import onnxruntime

original = onnxruntime.InferenceSession.__init__


@functools.wraps(original)
def ready(self, *arguments, **options):
    original(self, *arguments, **options)
    try:
        with open(os.environ["READY_FILE"], "x", encoding="ascii") as file:
            file.write(f"{time.monotonic():.6f}\n")
    except FileExistsError:
        pass  # it isn't the first


onnxruntime.InferenceSession.__init__ = ready
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
