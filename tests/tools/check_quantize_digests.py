#!/usr/bin/env python3
"""Files of ort-quantize are those that another machine made.

usage: check_quantize_digests.py [--renew] TABLE TOOLS MODELS

TABLE (JSON) has for each way to write a file (ROWS of check_same_bytes.py), on each net, the digest of the file and of each of
its tensors, or of each value's entry in a file of ranges. It was made on one processor; every other one that has AVX2 writes
the same bytes. Where AVX2 is missing, what looks at samples is stamped with its tier and not asked for. The first file that
differs is named with its first tensor that does, which stays behind for a look. --renew writes TABLE: for a change that is
meant to choose other codes.
"""
import argparse
import hashlib
import json
import pathlib
import sys
import tempfile

import onnx

from check_same_bytes import NETS, ROWS, assignment, tiers, write

LETTERS = 12


def digest(data, letters=LETTERS):
    return hashlib.sha256(data).hexdigest()[:letters]


def parts_of(path, data):
    """Digests by name of what a file is made of, in its order."""
    if path.suffix == ".json":
        values = json.loads(data)["values"]
        rows = values.items() if isinstance(values, dict) else [(v["name"], v) for v in values]
        return {name: digest(json.dumps(row).encode()) for name, row in rows}
    model = onnx.load_from_string(data)
    parts = {t.name: digest(t.SerializeToString(deterministic=True)) for t in model.graph.initializer}
    nodes = b"".join(n.SerializeToString(deterministic=True) for n in model.graph.node)
    return {**parts, "(nodes)": digest(nodes), "(metadata)": digest(repr([(p.key, p.value) for p in model.metadata_props]).encode())}


def made_here(tools, net, folder, has_avx2):
    """(name, path, entry of the table) of each row."""
    words = {"net": net, "assignment": folder / "assignment.json"}
    words["assignment"].write_text(json.dumps(assignment(net.name)))
    best = tiers(tools)[-1]
    for row in ROWS:
        if row[2] and not has_avx2:
            continue
        data, path = write(tools / "ort-quantize", row, words, folder, best, 2)
        words[row[0]] = path
        yield f"{net.name} {row[0]}", path, {"file": digest(data, 64), "parts": parts_of(path, data)}


def difference(was, now):
    """The first part that isn't as it was."""
    if was is None:
        return "not in the table"
    for name in [*was["parts"], *now["parts"]]:
        if was["parts"].get(name) != now["parts"].get(name):
            return f"first in {name}"
    return "in what is no tensor, node or metadata"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--renew", action="store_true")
    parser.add_argument("table", type=pathlib.Path)
    parser.add_argument("tools", type=pathlib.Path)
    parser.add_argument("models", type=pathlib.Path)
    options = parser.parse_args()
    has_avx2 = "avx2" in tiers(options.tools)
    if options.renew and not has_avx2:
        sys.exit("check_quantize_digests: a table is made on a processor with AVX2")
    table = {} if options.renew else json.loads(options.table.read_text())
    made, failed = {}, 0
    for net in NETS:
        with tempfile.TemporaryDirectory() as folder:
            for name, path, entry in made_here(options.tools, options.models / net, pathlib.Path(folder), has_avx2):
                made[name] = entry
                if options.renew or table.get(name) == entry:
                    continue
                failed += 1
                print(f"not ok {name}: differs from what another machine made, {difference(table.get(name), entry)}", flush=True)
                if failed == 1:
                    kept = pathlib.Path(tempfile.gettempdir()) / f"differs-{path.name}"
                    kept.write_bytes(path.read_bytes())
                    print(f"    {kept}")
    if options.renew:
        options.table.write_text(json.dumps(made, indent=0) + "\n")
    missing = [name for name in table if name not in made] if has_avx2 else []
    for name in missing:
        print(f"not ok {name}: in the table, but not made")
    print(f"{len(made) - failed} passed, {failed + len(missing)} failed")
    return failed + len(missing) > 0


if __name__ == "__main__":
    sys.exit(main())
