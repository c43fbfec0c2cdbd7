#!/bin/sh
# run_abi.sh PROGRAMS MAP [MODELS] - the tests of libonnxruntime.so.1.
#
# What a client relies on before its first call (check_abi.py), then the scenarios of tests/abi/ beside
# the library that onnxruntime's wheel carries, where ONNX's tests were made (make conformance) some of
# their models, too, lifetimes.c, and the Python package beside onnxruntime's (check_python.py, check_python_names.py).
set -u
programs=$1 map=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
ours=$root/build/lib/onnxruntime/libonnxruntime.so.1
python=$root/build/venv/bin/python
log=$root/build/test/abi.parts
mkdir -p "$root/build/test"

theirs=$("$python" -c 'import glob, onnxruntime as o, os
print(*sorted(glob.glob(os.path.dirname(o.__file__) + "/capi/libonnxruntime.so.*"))[:1])')
"$python" "$root/tests/tools/check_abi.py" "$ours" "$map" "$root/build/bin/ort-run" | tee "$log"
if [ -n "$theirs" ]; then
    "$python" "$root/tests/tools/make_abi_models.py" "$root/build/abi" &&
        CUSTOM_OPS=$programs/custom_ops.so "$programs/differ" "$ours" "$theirs" "$root/build/abi" "$root/build/conformance" | tee -a "$log"
    "$programs/lifetimes" "$ours" "$root/build/abi" | tee -a "$log"
    "$python" "$root/tests/tools/check_python.py" ${3:+"$3"} | tee -a "$log"
    "$python" "$root/tests/tools/check_python_names.py" | tee -a "$log"
else
    echo "skip abi: the wheel of onnxruntime carries no library to compare with" | tee -a "$log"
    echo "0 passed, 0 failed, 1 skipped" >> "$log"
fi
awk -v skip="${theirs:+0}" '/^[0-9]+ passed, [0-9]+ failed/ { p += $1; f += $3; s += $5; n++ }
     END { if (n < (skip == "" ? 2 : 5)) f++; printf "%d passed, %d failed, %d skipped\n", p, f, s; exit f > 0 }' "$log"
