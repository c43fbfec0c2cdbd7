#!/usr/bin/env python3
"""asserts.py - how many asserts stand in a thousand lines of each room of lib/.

Counts "assert(" outside of comments and strings in .c, .h and .inc files, and all their lines. Builds for release
have none of them (NDEBUG); builds for development (make DEBUG=1, or with sanitizers) stop at the first that fails.
make lint asks that the rooms of GUARDED, on which all others stand, keep LEAST of them.

asserts.py [ROOT]
"""
import collections
import pathlib
import re
import sys

GUARDED = ("graph", "exec", "io", "kernel")
LEAST = 8 # in a thousand lines
PASSED_OVER = re.compile(r"""/\*.*?\*/ | //[^\n]* | "(?:\\.|[^"\\\n])*" """, re.S | re.X)


def count_asserts(root):
    """{room: [asserts, lines]}; a room's folders inside, as the tiers of kernel/, count with it."""
    counts = collections.defaultdict(lambda: [0, 0])
    for path in (root / "lib").rglob("*"):
        if path.suffix not in (".c", ".h", ".inc"):
            continue
        text = path.read_text()
        inside = path.relative_to(root / "lib").parts
        room = counts[inside[0] if len(inside) > 1 else "."]
        room[0] += len(re.findall(r"\bassert\(", PASSED_OVER.sub("", text)))
        room[1] += len(text.splitlines())
    return counts


def find_bare(counts):
    """The rooms of GUARDED with fewer than LEAST, each as it stands in a message."""
    rows = [(room, *counts.get(room, (0, 0))) for room in GUARDED]
    return [f"lib/{room}: {asserts} asserts in {lines} lines, needs {LEAST} in a thousand"
            for room, asserts, lines in rows if lines == 0 or asserts * 1000 < LEAST * lines]


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]
    counts = count_asserts(root)
    print(" room        lines  asserts  in a thousand")
    for room, (asserts, lines) in sorted(counts.items()):
        print(f"{'*' if room in GUARDED else ' '}{room:10} {lines:6} {asserts:8} {asserts * 1000 / lines:14.1f}")
    return bool(find_bare(counts))


if __name__ == "__main__":
    sys.exit(main())
