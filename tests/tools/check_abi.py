#!/usr/bin/env python3
"""check_abi.py LIBRARY MAP ORT_RUN - what a client relies on before it calls anything, and what the library holds.

Symbols: two functions, each at the version of every release. Slots: one table of 428 functions for every version
that can be asked for; each that isn't provided says so with its name, each that is has a scenario. Size: nothing of the quantizer, of image
codecs or of reports is linked in, and the stripped library is at most 1.0 MB above ort-run.
Prints one line per finding, the bytes of each room, and "N passed, N failed, 0 skipped".
"""
import collections
import ctypes
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FUNCTIONS = ("OrtGetApiBase", "OrtSessionOptionsAppendExecutionProvider_CPU")
UNWANTED = re.compile(r"lib/(quantize|report|made_up|verify)/|lib/io/(image|wav|npy|csv|json_tensor|safetensors)|image_decoder")
EXCEPTIONS = ("a vendor's provider", "plugin providers", "views of graphs")  # what programs call and isn't provided
passed = failed = 0


def check(ok, message):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    if not ok:
        print(f"FAIL {message}")


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def check_symbols(library):
    exported = collections.defaultdict(set)
    for line in output("nm", "-D", "--defined-only", library).splitlines():
        kind, name = line.split()[1:]
        if kind != "A":
            exported[name.partition("@")[0]].add(name.partition("@")[2])
    check(set(exported) == set(FUNCTIONS), f"exports {sorted(exported)}")
    versions = [f"VERS_1.{minor}{patch}" for minor in range(41) for patch in ("", ".0", ".1", ".2", ".3", ".4")]
    wanted = {("@" if v == "VERS_1.31.1" else "") + v for v in versions}
    for name in FUNCTIONS:
        check(exported[name] == wanted, f"{name}: versions differ in {sorted(exported[name] ^ wanted)[:5]}")
    dynamic = output("readelf", "-d", library)
    check("[libonnxruntime.so.1]" in dynamic, "soname isn't libonnxruntime.so.1")
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", dynamic))
    check(all(re.match(r"lib(c|m|dl|pthread|protobuf-c|json-c|z)\.so|ld-linux", n) for n in needed), f"needs {needed}")
    unresolved = subprocess.run(["ldd", "-r", library], capture_output=True, text=True)
    check("undefined" not in unresolved.stdout + unresolved.stderr, "ldd -r finds undefined symbols")


def slots():
    """(number, kind, name, provided) of abi/slots.def."""
    for line in (ROOT / "abi/slots.def").read_text().splitlines():
        row = re.match(r"(SLOT|GAP)\((\d+), \d+, ([\w *]+), (\w+)", line)
        if row:
            yield int(row[2]), row[3].strip(), row[4], row[1] == "SLOT"


def check_scenarios(rows):
    """What is provided is called in a scenario, and what programs call (tests/abi/called.txt) is provided."""
    text = "".join(p.read_text() for p in (ROOT / "tests/abi").glob("*.c"))
    called = set(re.findall(r"->(\w+)\(", text)) | set(re.findall(r"GOOD\(\w+, (\w+)", text))
    called |= set(re.findall(r"(?:TEXT|TEXT_OF)\((\w+)", text)) | set(re.findall(r"api->(\w+)\b", text))
    provided = {name for *_, name, given in rows if given}
    for name in sorted(provided - called):
        check(False, f"{name}: no scenario of tests/abi/ calls it")
    for name, reason in called_by_programs():
        if reason:
            check(reason in EXCEPTIONS and name in {r[2] for r in rows} - provided, f"{name}: no exception ({reason})")
        else:
            check(name in provided, f"{name}: programs call it, and it isn't provided")


def called_by_programs():
    """(name, why it needn't be provided or "") of tests/abi/called.txt."""
    for line in (ROOT / "tests/abi/called.txt").read_text().splitlines():
        if not line.startswith("#"):
            yield line.partition(" - ")[::2]


class Base(ctypes.Structure):
    _fields_ = [("get_api", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)),
                ("get_version", ctypes.CFUNCTYPE(ctypes.c_char_p))]


def check_manual(rows):
    """The manual page names each function that answers that it isn't provided, behind them those that give nothing,
    and no other that isn't provided."""
    page = (ROOT / "man/libonnxruntime.7").read_text()
    refused, _, rest = page[page.index(".Sh WHAT IS NOT"):page.index(".Sh WHAT DIFFERS")].partition("\n.El\n")
    provided = {name for *_, name, given in rows if given}
    for part, others, wanted in ((refused, set(), "STATUS"), (rest, provided, "VALUE")):
        named = set(re.findall(r"^\.Fn (\w+)", part, re.M)) - others
        gaps = {name for _, kind, name, given in rows if not given and kind == wanted}
        check(named == gaps, f"libonnxruntime.7 and slots.def differ in {sorted(named ^ gaps)}")


def check_slots(library):
    rows = list(slots())
    check_manual(rows)
    check_scenarios(rows)
    check([r[0] for r in rows] == list(range(428)), f"slots.def has {len(rows)} slots, or not in order")
    handle = ctypes.CDLL(library)
    handle.OrtGetApiBase.restype = ctypes.POINTER(Base)
    base = handle.OrtGetApiBase().contents
    check(re.fullmatch(rb"1\.\d+\.\d+", base.get_version()), f"version {base.get_version()}")
    tables = {base.get_api(version) for version in range(1, 32)}
    check(len(tables) == 1 and None not in tables, f"{len(tables)} tables")
    check(base.get_api(0) is None and base.get_api(32) is None, "a version that there isn't gives a table")
    functions = ctypes.cast(tables.pop(), ctypes.POINTER(ctypes.c_void_p * 428)).contents
    check(all(functions), "a slot is NULL")
    text = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)(functions[2])
    code = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(functions[1])
    release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(functions[93])
    for number, kind, name, provided in rows:
        if provided:
            continue
        result = ctypes.CFUNCTYPE(ctypes.c_void_p)(functions[number])()
        if kind == "STATUS":
            check(result and code(result) == 9 and name.encode() in text(result), f"slot {number} {name} doesn't name itself")
            release(result)
        else:
            check(kind == "RELEASE" or not result, f"slot {number} {name} gives something")


def check_size(library, link_map, ort_run):
    sizes, rooms, unwanted = {}, collections.Counter(), set()
    with tempfile.TemporaryDirectory() as folder:
        for path in (library, ort_run):
            stripped = os.path.join(folder, "stripped")
            subprocess.run(["strip", "-o", stripped, path], check=True)
            sizes[path] = os.path.getsize(stripped)
    text = pathlib.Path(link_map).read_text().partition("Linker script and memory map")[2]
    for size, place in re.findall(r"^ \.(?:text|rodata|data|bss)\S*\s+0x[0-9a-f]+\s+0x([0-9a-f]+) (\S+)$", text, re.M):
        member = re.search(r"(abi|lib|gen)/[\w/.-]*(?=\.o)", place) or re.search(r"libort\.a\(([\w-]+)", place)
        name = source_of(member[0] if "/" in member[0] else member[1]) if member else "libraries"
        rooms[name.rpartition("/")[0] or name] += int(size, 16)
        if UNWANTED.search(name) and int(size, 16):
            unwanted.add(name)
    check(not unwanted, f"linked in: {sorted(unwanted)[:8]}")
    check(sum(rooms.values()) > 1e6, "the link map has no sizes")
    above = sizes[library] - sizes[ort_run]
    check(above <= 1_000_000, f"{above} bytes above ort-run, at most 1,000,000")
    for room, size in rooms.most_common():
        print(f"{size:>9} {room}")
    print(f"stripped: {sizes[library]} bytes, ort-run {sizes[ort_run]}")


def source_of(name, known={}):
    """lib/op/net/conv of an archive's member conv."""
    if not known:
        known.update({p.stem: str(p.relative_to(ROOT))[:-2] for p in (ROOT / "lib").rglob("*.c")})
    return name if "/" in name else known.get(name, name)


def main():
    library, link_map, ort_run = sys.argv[1:]
    check_symbols(library)
    check_slots(library)
    check_size(library, link_map, ort_run)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed != 0


sys.exit(main())
