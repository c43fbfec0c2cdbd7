#!/usr/bin/env python3
"""What ort-optimize's library wrote, on onnxruntime: a model that onnxruntime runs as it was must
check, run and give the same after it was rewritten.

usage: check_written.py WRITTEN_DIR SOURCE_DIR

WRITTEN_DIR holds NAME.onnx (conformance --optimize), SOURCE_DIR the folders NAME/model.onnx with
test_data_set_0. Models that draw random numbers are left out: two runs of the original differ.
"""
import pathlib
import sys

import onnx

from onnx_runs import differ, inputs_of, on_codes, session

CODES = 0.03  # 8 of 255 steps


def is_complete(path):
    """Does onnx's own inference of shapes find nothing wrong? Where it does, it says nothing of ours."""
    try:
        onnx.checker.check_model(str(path), full_check=True)
    except Exception:  # noqa: BLE001
        return False
    return True


def check(written, folder):
    """None: onnxruntime doesn't run the original; "": all is well; else what is wrong."""
    try:
        original = session(folder / "model.onnx")
        feeds = inputs_of(folder, original)
        if feeds is None:
            return None
        wanted, again = original.run(None, feeds), original.run(None, feeds)
    except Exception:  # noqa: BLE001 - whatever it refuses is not ours to judge
        return None
    if any(differ(a, b) for a, b in zip(wanted, again)):
        return None
    try:
        onnx.checker.check_model(str(written), full_check=is_complete(folder / "model.onnx"))
        got = session(written).run(None, feeds)
    except Exception as error:  # noqa: BLE001
        return str(error).splitlines()[0]
    codes = CODES if on_codes(written) and not on_codes(folder / "model.onnx") else 0
    bad = [o.name for o, a, b in zip(original.get_outputs(), wanted, got) if differ(a, b, codes)]
    return f"outputs differ: {', '.join(bad)}" if bad else ""


def main():
    written, source = map(pathlib.Path, sys.argv[1:])
    passed = failed = skipped = 0
    for path in sorted(written.glob("*.onnx")):
        result = check(path, source / path.stem)
        passed += result == ""
        skipped += result is None
        if result:
            failed += 1
            print(f"not ok {path.stem}: {result}")
    print(f"{passed} passed, {failed} failed, {skipped} skipped (onnxruntime doesn't run these)")
    return failed > 0 or passed == 0


if __name__ == "__main__":
    sys.exit(main())
