#!/usr/bin/env python3
"""What every file of ort-optimize must keep, on every model of a folder.

usage: check_properties.py WRITTEN_DIR SOURCE_DIR [OPTION...]     OPTIONs of ort-optimize

Each SOURCE_DIR/NAME/model.onnx gets an unknown field in its model and its graph and an entry of
metadata, is optimized into WRITTEN_DIR/NAME.onnx, and then:
- two threads give the same bytes as one
- the written file optimized again gives the same bytes
- it is not larger
- names of inputs and outputs, metadata and the unknown fields are there; before IR version 4 an
  initializer had to be listed as an input, and need not be after it; nor need it where all are

A model that ort-optimize refuses in its first run (an operator nobody has) is skipped.
"""
import pathlib
import subprocess
import sys
import tempfile

import onnx

from fixtures import field, varint

TOOL = pathlib.Path(__file__).resolve().parents[2] / "build/bin/ort-optimize"
UNKNOWN = field(1999, "kept by whoever does not know it")
METADATA = field(14, field(1, "marked by") + field(2, "check_properties.py"))
GRAPH = 7


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    """(number, start, payload start, end) of each top-level field."""
    at = 0
    while at < len(data):
        start = at
        key, at = read_varint(data, at)
        payload = at
        if key & 7 == 0:
            _, at = read_varint(data, at)
        elif key & 7 == 2:
            length, payload = read_varint(data, at)
            at = payload + length
        else:
            at += 8 if key & 7 == 1 else 4
        yield key >> 3, start, payload, at


def mark(data):
    """The model with unknown fields and metadata."""
    out = b""
    for number, start, payload, end in fields(data):
        if number == GRAPH:
            size = end - payload + len(UNKNOWN)
            out += varint(GRAPH << 3 | 2) + varint(size) + data[payload:end] + UNKNOWN
        else:
            out += data[start:end]
    return out + UNKNOWN + METADATA


def has_marks(data):
    top = [data[start:end] for _, start, _, end in fields(data)]
    inner = [data[payload:end] for number, _, payload, end in fields(data) if number == GRAPH]
    return UNKNOWN in top and METADATA in top and all(UNKNOWN in graph for graph in inner)


def optimize(source, target, options, threads):
    """"" or the first line of what the tool said."""
    done = subprocess.run([TOOL, source, "-q", "--no-verify", "--threads", str(threads), *options,
                           "-o", target], stderr=subprocess.PIPE, text=True, check=False)
    return (done.stderr.splitlines() or [f"exit {done.returncode}"])[0] if done.returncode else ""


def ports(model, all_inputs):
    listed = set() if all_inputs else {i.name for i in model.graph.initializer}
    return ([v.name for v in model.graph.input if v.name not in listed],
            [v.name for v in model.graph.output])


def total_bytes(path):
    return sum(p.stat().st_size for p in path.parent.glob(path.name + "*"))


def check(source, written, again, options):
    """None: refused at first; "": all is well; else what is wrong."""
    if optimize(source, written, options, 1):
        return None
    data = written.read_bytes()
    if why := optimize(source, again, options, 2):
        return f"two threads: {why}"
    if again.read_bytes() != data:
        return "two threads give other bytes"
    if why := optimize(written, again, options, 1):
        return f"its own output: {why}"
    if again.read_bytes() != data:
        return "its own output gives other bytes"
    if total_bytes(written) > total_bytes(source):
        return f"{total_bytes(written)} bytes from {total_bytes(source)}"
    if not has_marks(data):
        return "unknown fields or metadata are gone"
    before = onnx.load(str(source), load_external_data=False)
    after = onnx.load(str(written), load_external_data=False)
    inputs = {i.name for i in before.graph.input}
    means_them = before.ir_version >= 4 and any(i.name not in inputs for i in before.graph.initializer)
    was, now = (ports(model, means_them) for model in (before, after))
    return f"inputs and outputs were {was}, are {now}" if was != now else ""


def main():
    target, sources, options = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:]
    passed = failed = skipped = 0
    with tempfile.TemporaryDirectory() as scratch:
        marked, again = pathlib.Path(scratch, "marked.onnx"), pathlib.Path(scratch, "again.onnx")
        for folder in sorted(f for f in sources.iterdir() if (f / "model.onnx").exists()):
            marked.write_bytes(mark((folder / "model.onnx").read_bytes()))
            result = check(marked, target / f"{folder.name}.onnx", again, options)
            passed += result == ""
            skipped += result is None
            failed += bool(result)
            if result:
                print(f"not ok {folder.name}: {result}")
    print(f"{passed} passed, {failed} failed, {skipped} skipped (refused)")
    return failed > 0 or passed == 0


if __name__ == "__main__":
    sys.exit(main())
