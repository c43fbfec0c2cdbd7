#!/usr/bin/env python3
"""lint.py - the rules of the house that a machine can check.

- no files of the library, nor of a tool, use each other in a circle; includes and calls between rooms follow the
  "may include" column of lib/README.md, which has no circle either
- a pass has the name of its file
- what a header declares is used in another file than the one that defines it
- a status is compared (with ORT_OK, an exit status with 0), equal strings are !strcmp(a, b)
- graph, exec, io and kernel have 8 asserts in a thousand lines at least (tests/tools/asserts.py)
- these rules refuse what breaks them, planted
- no room made of operators or passes is above 7,000 lines
- basenames are unique across lib/, no line is longer than 100 columns, no file longer than 1000 lines
- no banned function, no unfinished mark, no output or exit in the library
- every file that runs operators says what bounds its loops, and paces those that attributes drive
- single numbers are read of tensors through tensor/scalar.h
- attributes that are asked of a row (ort_node_attr_int and its kin) are ones that some row has
- every tool option appears in the tool's man page
- every ending of a tensor format, and every word of --format, is tested in every way of reading and writing it
- help, ort.h and the pages list the kernel tiers
- ort(3) lists the operators that have a rule of differentiation
- every function of ort.h meets hostile arguments in tests/unit/test_hostile.c
- man pages, README and headers exist for what they describe
lint.py OBJECTS: the folder that the library was built in, for the calls.
Prints one line per finding and closes with "N passed, N failed, 0 skipped".
"""
import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/tools"))
import asserts  # noqa: E402
BANNED = r"\b(strcpy|strcat|sprintf|vsprintf|gets|strncpy|strtok|alloca)\s*\("
IN_LIBRARY = r"\b(exit|abort|printf|puts|putchar|_exit)\s*\("
UNFINISHED = r"\b(TODO|FIXME|XXX|HACK)\b"

failures = []
checks = 0


def check(ok, message):
    global checks
    checks += 1
    if not ok:
        failures.append(message)


def sources(folder, *endings):
    """Files of the project: what git tracks, or, in a release's archive, what is there."""
    if (ROOT / ".git").exists():
        listed = subprocess.run(["git", "ls-files", folder], cwd=ROOT, capture_output=True, text=True,
                                check=True).stdout.split()
    else:
        listed = sorted(str(p.relative_to(ROOT)) for p in (ROOT / folder).rglob("*") if p.is_file())
    return [ROOT / name for name in listed if name.endswith(endings) and (ROOT / name).exists()]


def include_table():
    """Rows `| room | what | may include |` of lib/README.md."""
    table = {}
    for line in (ROOT / "lib/README.md").read_text().splitlines():
        cells = [c.strip() for c in line.strip().strip("|").split("|")]
        if len(cells) == 3 and re.fullmatch(r"`[a-z_]+(?:/[a-z_]+){0,2}/`", cells[0]):
            room = cells[0].strip("`/")
            table[room] = set() if cells[2] == "none" else set(cells[2].split())
    return table


def room_of(name, table):
    """The room of a file of lib/, by its path there: the innermost folder that has a row, or None for
    api*.c and the public headers, which every room may include and none may call."""
    folder = str(pathlib.PurePath(name).parent)
    while folder not in table and "/" in folder:
        folder = folder.rsplit("/", 1)[0]
    return folder if folder in table else None


def find_circle(table):
    done, path = set(), []

    def walk(room):
        if room in path:
            return path[path.index(room):] + [room]
        if room in done:
            return None
        path.append(room)
        for other in sorted(table.get(room, ())):
            circle = walk(other)
            if circle:
                return circle
        path.pop()
        done.add(room)
        return None

    for room in sorted(table):
        circle = walk(room)
        if circle:
            return circle
    return None


def strip_comments(text):
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group().count("\n"), text, flags=re.S)
    return re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)


def lint_includes(table):
    check(len(table) >= 30, "lib/README.md: the table of rooms is missing")
    circle = find_circle(table)
    check(not circle, f"lib/README.md: rooms in a circle: {' -> '.join(circle or [])}")
    files = {str(p.relative_to(ROOT / "lib")) for p in sources("lib", ".c", ".h", ".inc", ".def")}
    for path in sources("lib", ".c", ".h", ".inc"):
        name = str(path.relative_to(ROOT / "lib"))
        room = room_of(name, table)
        if "/" not in name:
            continue
        check(room is not None, f"lib/{name}: its folder has no row in lib/README.md")
        for target in re.findall(r'#\s*include "([^"]+)"', path.read_text()):
            other = room_of(target, table) if target in files else None
            check(other in (None, room) or other in table.get(room, ()),
                  f"lib/{name}: {room}/ may not include {target}")
    for path in sources("cmd", ".c", ".h"):
        for target in re.findall(r'#\s*include "([^"]+)"', path.read_text()):
            ok = target == "ort.h" or target.startswith("common/") or "/" not in target
            check(ok, f"{path.relative_to(ROOT)}: tools may include ort.h and common/ only: {target}")
    for path in sources("abi", ".c", ".h"):
        for target in re.findall(r'#\s*include [<"]([^>"]+)[>"]', path.read_text()):
            ok = target in ("ort.h", "abi.h", "slots.def", "abi_symbols.inc") or not (ROOT / "lib" / target).exists()
            check(ok, f"{path.relative_to(ROOT)}: the drop-in may include ort.h only: {target}")


def lint_sizes(table):
    lines = collections.Counter()
    for path in sources("lib", ".c", ".h", ".inc", ".def"):
        room = room_of(str(path.relative_to(ROOT / "lib")), table)
        lines[room] += len(path.read_text().splitlines())
    for room, count in lines.items():
        check(count <= 7000 or not re.match(r"op|pass|emit|gradient|report|provider", room or ""),
              f"lib/{room}: {count} lines; a room made of operators or passes has 7000 at most")


# Tables name their rows, wherever these live: (file, names of rows).
TABLES = {"io/format.c": r"ort_format_row_\w+", "op/registry.c": r"ort_ops_\w+", "pass/pass.c": r"ort_pass_\w+",
          "provider/partition.c": r"ort_provider_\w+", "provider/opencl/opencl_rows.c": r"ort_cl_\w+_rows",
          "gradient/gradient_rules.c": r"ort_grad_\w+"}


def symbols(path):
    """(defined, used) names of an object file."""
    defined, used = set(), set()
    text = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
    for line in text.splitlines():
        fields = line.split()
        if len(fields) == 3 and fields[1] in "TDRBVC":
            defined.add(fields[2])
        elif len(fields) == 2 and fields[0] == "U":
            used.add(fields[1])
    return defined, used


def find_uses(objects, folder):
    """{file: {other file: {symbols}}} of a folder, lib or cmd/TOOL, without what tables say of their rows."""
    owner, wanted, uses = {}, {}, {}
    for path in sources(folder, ".c"):
        name = str(path.relative_to(ROOT / folder))
        built = objects / folder / (name[:-1] + "o")
        if not built.exists():
            check(name.startswith("kernel/"), f"{folder}/{name}: wasn't built: make all") # else: of another machine
            continue
        defined, wanted[name] = symbols(built)
        owner.update(dict.fromkeys(defined, name))
    check(len(wanted) > (400 if folder == "lib" else 0), f"{objects}: {folder}'s objects are missing: make all")
    for name, used in wanted.items():
        uses[name] = {}
        for symbol in used & owner.keys():
            if owner[symbol] != name and not re.fullmatch(TABLES.get(name, "$"), symbol):
                uses[name].setdefault(owner[symbol], set()).add(symbol)
    return uses


def lint_calls(table, uses):
    """What a room calls and reads, it may include: ort.h declares what lies above it, too."""
    for name, others in uses.items():
        room = room_of(name, table)
        for other, used in others.items():
            above = room_of(other, table)
            check("/" not in name or above == room or above in table.get(room, ()),
                  f"lib/{name}: {room}/ may not use {sorted(used)} of {other}")


def lint_circles(uses, folder="lib"):
    """No two files use each other, by whatever way."""
    while True: # a file that uses no other, or that no other uses, is in no circle
        used = {other for others in uses.values() for other in others}
        ends = [name for name, others in uses.items() if not others or name not in used]
        if not ends:
            break
        for name in ends:
            del uses[name]
        for others in uses.values():
            for name in ends:
                others.pop(name, None)
    circle = find_circle(uses)
    check(not circle, f"{folder}: files in a circle: " +
          " -> ".join(f"{name} {sorted(uses[name].get(after, ()))[:3]}"
                      for name, after in zip(circle or [], (circle or [])[1:] + [""])))


def lint_passes():
    """A pass has the name of its file."""
    listed = set(re.findall(r"^X\((\w+)\)", (ROOT / "lib/pass/passes.def").read_text(), re.M))
    found = set()
    for path in sources("lib/pass", ".c") + sources("lib/provider", ".c"):
        for name in re.findall(r'const ort_pass ort_pass_\w+ = \{\s*\.name = "(\w+)"', path.read_text()):
            found.add(name)
            check(name == path.stem, f"{path.relative_to(ROOT)}: its pass is called {name}")
    check(listed == found, f"lib/pass/passes.def: differs in {sorted(listed ^ found)}")


def code_of(*folders):
    """{name: text without comments and strings} of the C files there."""
    return {str(path.relative_to(ROOT)): strip_comments(path.read_text())
            for folder in folders for path in sources(folder, ".c", ".h", ".inc", ".def")}


def declared(header):
    """The functions and objects that a header declares, bodies and macros left out."""
    text, before = re.sub(r"#(?:[^\n]*\\\n)*[^\n]*", "", header), None
    while text != before:
        text, before = re.sub(r"\{[^{}]*\}", "", text), text
    return re.findall(r"^(?!typedef|static|struct \w+;|union|enum)[A-Za-z_][\w \n*]*[ *](\w+)\([^;{}]*\)[^;{}]*;",
                      text, re.M) + re.findall(r"^extern [^;(]*?(\w+)(?:\[[^\]]*\])?;", text, re.M)


def lint_shared(files):
    """What a header declares crosses files: one more than the header and the file that defines it names it,
    or the header itself does (in a macro). What ort.h declares is for programs."""
    words = {name: collections.Counter(re.findall(r"\w+", text)) for name, text in files.items()}
    for header, text in files.items():
        if re.match(r"(lib/[^/]*/|cmd/).*\.h$", header):
            for name in declared(text):
                users = [other for other in words if other != header and words[other][name]]
                check(len(users) > 1 or words[header][name] > 1,
                      f"{header}: {name} is used in {users} alone: make it static there, or remove it")


STATUS = r"(?:\w+(?:->|\.))*\bstatus\b(?:\[\w+\])?(?![\w(\[])"
IDIOMS = [(re.compile(rf"!{STATUS}|\b(?:if|while) \({STATUS}\)|(?:&&|\|\|) {STATUS}\)|"
                      rf"(?:[(,;=?:|&]\s*|\breturn ){STATUS} (?:\?|&&|\|\|)"),
           "compare a status with ORT_OK, an exit status with 0"),
          (re.compile(r"\b(?:str|strn|mem|strcase|strncase)cmp"
                      r"(\((?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*\))\s*[!=]=\s*0\b"),
           "equal strings are !strcmp(a, b), others strcmp(a, b)")]


def lint_idioms(files):
    """One way to ask a question that every file asks."""
    for name, text in files.items():
        for pattern, advice in IDIOMS:
            found = pattern.search(text)
            place = text.count("\n", 0, found.start()) + 1 if found else 0
            check(not found, f"{name}:{place}: {found and found[0].strip()}: {advice}")


NEGATED = re.compile(r"^ +! (?:[^\n]*\\\n)*[^|\n]*(?:\|[^|\n]+)*\n(?!\})", re.M)


def lint_negations(files):
    """A shell takes a command that ! negates for one that can't fail, so that it fails a test as its last line alone."""
    for name, text in files.items():
        found = NEGATED.search(text)
        place = text.count("\n", 0, found.start()) + 1 if found else 0
        check(not found, f"{name}:{place}: {found and found[0].strip()}: fails no test: add || false")


def lint_asserts(counts):
    """Rooms on which all others stand check what they rely on."""
    bare = asserts.find_bare(counts)
    check(not bare, "; ".join(bare))


def says_no(rule, *given):
    """Does the rule refuse this? What it finds there isn't reported."""
    global checks
    known, had = len(failures), checks
    rule(*given)
    refused = len(failures) > known
    del failures[known:]
    checks = had
    return refused


def lint_rules(table):
    """Rules refuse what breaks them, planted."""
    for code in ("if (!status)", "return x->status ? a : b;", "if (status)", "while (a && s.status)",
                 "x = !strcmp(a, f(b)) && strcmp(a, b) == 0;", "if (memcmp(a, b + (c), 4) != 0)"):
        check(says_no(lint_idioms, {"x.c": code}), f"lint_idioms lets {code} pass")
    for code in ("if (status != ORT_OK && !strcmp(a, b))", "f(status); return status;", "a < b ? b->status : x;"):
        check(not says_no(lint_idioms, {"x.c": code}), f"lint_idioms refuses {code}")
    for line, passes in (("    ! cmp a b\n    c\n}\n", False), ("    ! a | grep b \\\n        c\n    d\n", False),
                         ("    ! cmp a b || false\n    c\n}\n", True), ("    c\n    ! a | grep b\n}\n", True)):
        check(says_no(lint_negations, {"x.bats": line}) != passes, f"lint_negations is wrong about {line}")
    lone = {"lib/a/x.h": "int ort_x(int a,\n          int b);", "lib/a/x.c": "int ort_x(int a, int b) {} ort_x",
            "lib/b/y.c": "ort_xy(1);"}
    check(says_no(lint_shared, lone), "lint_shared lets a function pass that its own file alone uses")
    check(not says_no(lint_shared, lone | {"lib/b/y.c": "ort_x(1);"}), "lint_shared refuses what two files use")
    upward = {"io/npy.c": {"exec/run.c": {"ort_frame_run"}}}
    aside = {"op/math/unary.c": {"op/net/conv.c": {"ort_conv_run_f32"}}}
    outside = {"verify/verify.c": {"api_session.c": {"ort_session_new"}}}
    round_ = {"a.c": {"b.c": {"x"}}, "b.c": {"c.c": {"y"}}, "c.c": {"a.c": {"z"}}, "d.c": {"a.c": {"w"}}}
    for uses in (upward, aside, outside):
        check(says_no(lint_calls, table, uses), f"lint_calls lets {uses} pass")
    check(says_no(lint_circles, round_), "lint_circles lets three files in a circle pass")
    aimed = {"main.c": {"gates.c": {"gates_check"}}, "gates.c": {"main.c": {"fail"}}}
    check(says_no(lint_circles, aimed, "cmd/ort-tensor"), "lint_circles lets a tool's two files pass")
    check(says_no(lint_includes, table | {"base": {"exec"}}), "lint_includes lets rooms in a circle pass")
    check(says_no(lint_includes, table | {"op/net": set()}), "lint_includes lets any include pass")
    enough = {room: [8, 1000] for room in asserts.GUARDED}
    check(not says_no(lint_asserts, enough), f"lint_asserts refuses {enough}")
    for few in (enough | {"kernel": [7, 1000]}, {"graph": [8, 1000]}):
        check(says_no(lint_asserts, few), f"lint_asserts lets {few} pass")


def lint_text():
    seen = {}
    for path in sources("lib", ".c", ".h", ".inc") + sources("cmd", ".c", ".h") + \
            sources("abi", ".c", ".h", ".def") + sources("tests", ".c", ".h"):
        name = path.relative_to(ROOT)
        raw = path.read_text()
        lines = raw.splitlines()
        long_lines = [i + 1 for i, line in enumerate(lines) if len(line) > 100]
        check(not long_lines, f"{name}:{long_lines[:1]}: longer than 100 columns")
        check(len(lines) <= 1000, f"{name}: {len(lines)} lines, at most 1000")
        check(raw.startswith("/*"), f"{name}: does not open with a comment on its purpose")
        code = strip_comments(raw)
        check(not re.search(BANNED, code), f"{name}: banned function "
              f"{re.findall(BANNED, code)[:3]}")
        check(not re.search(UNFINISHED, raw), f"{name}: unfinished mark")
        if name.parts[0] == "lib":
            check(not re.search(IN_LIBRARY, code), f"{name}: the library neither prints nor exits: "
                  f"{re.findall(IN_LIBRARY, code)[:3]}")
            if len(name.parts) >= 3 and name.parts[1] != "kernel":
                check(path.name not in seen, f"{name}: basename also in {seen.get(path.name)}")
                seen[path.name] = name


FIRST = re.compile(r"data\)\[0\]|ort_tensor_get_(?:i64|f64)\((?:[^();]|\([^();]*\))*, 0\)|"
                   r"\*\((?:const )?\w+ \*\)[\w.>()-]*data\b")


def lint_first_elements():
    """The only element of a tensor is read through tensor/scalar.h, which asks whether there is one; the
    first of several says so in a comment: /* first of ...: who counted them */."""
    rooms = ("op", "pass", "opset", "gradient", "emit", "provider")
    for path in [p for room in rooms for p in sources(f"lib/{room}", ".c", ".h", ".inc")]:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            check(not FIRST.search(line) or "/* first of " in line,
                  f"{path.relative_to(ROOT)}:{number}: reads a first element: use "
                  "ort_call_i64 and its kin (op/number.h) or ort_tensor_one_* "
                  "(tensor/scalar.h), or say /* first of ... */")


def lint_attributes():
    """A row without the attribute answers 0 or nothing: a misspelled name would go unnoticed."""
    rows, asked = set(), []
    for path in sources("lib", ".c", ".h"):
        text = path.read_text()
        rows.update(re.findall(r'[" +]([A-Za-z_]\w*):(?:[fist]|g|fs|is|ss|tp)\b', text))
        asked += [(path, name) for name in
                  re.findall(r'ort_node_attr_(?:int|float|is|text)\((?:[^(),"]|\([^()]*\))*, "(\w+)"', text)]
    for path, name in asked:
        check(name in rows, f"{path.relative_to(ROOT)}: no row has the attribute {name}")


def lint_loops():
    """tests/lint/loops.txt: what bounds the loops of operators."""
    bounds = dict(line.split() for line in (ROOT / "tests/lint/loops.txt").read_text().splitlines()
                  if line and not line.startswith("#"))
    runs = r"\.run = |_run\(ort_call \*|ort_call_parallel|ort_call_range|\(void \*arg, size_t task"
    files = {path.stem: strip_comments(path.read_text()) for path in sources("lib/op", ".c")}
    for name, text in files.items():
        if re.search(runs, text):
            check(name in bounds, f"tests/lint/loops.txt: no line for {name}.c, which runs operators")
        if re.search(r"\bort_pace_over\b|\bort_budget_check\b", text) and name in bounds:
            check(bounds[name] == "paced", f"tests/lint/loops.txt: {name} is paced")
    for name, kind in bounds.items():
        check(name in files, f"tests/lint/loops.txt: there is no {name}.c")
        if kind == "paced":
            check(re.search(r"\bort_pace_over\b|\bort_budget_check\b", files.get(name, "")),
                  f"lib/op: {name}.c is to pace its loops, and calls neither ort_pace_over nor "
                  "ort_budget_check")


def lint_man_pages():
    for folder in sorted((ROOT / "cmd").iterdir()):
        if folder.name == "common" or not folder.is_dir():
            continue
        page = ROOT / "man" / f"{folder.name}.1"
        check(page.exists(), f"man/{folder.name}.1 is missing")
        tool = ROOT / "build/bin" / folder.name
        if not page.exists() or not tool.exists():
            continue
        text = page.read_text().replace("\\-", "-").replace("\\", "")
        shown = subprocess.run([str(tool), "--help"], capture_output=True, text=True).stdout
        for option in sorted(set(re.findall(r"--([a-z][a-z0-9-]*)", shown))):
            check(option in text, f"man/{folder.name}.1: says nothing of --{option}")


def public_functions():
    """What ort.h and the headers that it includes declare, in their order."""
    names = []
    for header in ("lib/ort.h", "lib/ort_tools.h", "lib/ort_ops.h", "lib/ort_provider.h"):
        text = re.sub(r"#define(?:[^\n]*\\\n)*[^\n]*", "",
                      re.sub(r"/\*.*?\*/", "", (ROOT / header).read_text(), flags=re.S))
        names += re.findall(r"^(?!typedef)"
                            r"(?:ORT_WARN_UNUSED )?[A-Za-z_0-9 ]+[ *](ort_[a-z0-9_]+)\([^;{]*\);",
                            text, re.M)
    return names


def lint_hostile():
    """No function of ort.h without hostile arguments, and none twice in it."""
    names = public_functions()
    check(len(names) > 130, "lib/ort.h: its functions weren't found")
    check(len(names) == len(set(names)), "lib/ort.h: declares a function twice")
    text = (ROOT / "tests/unit/test_hostile.c").read_text()
    for name in names:
        check(re.search(rf"\b{name}\(", text), f"tests/unit/test_hostile.c: says nothing of {name}")


def lint_gradient_rules():
    """ort(3) lists the operators that have a rule of differentiation, no more and no fewer."""
    rules = set()
    for path in sources("lib/gradient", ".c"):
        if path.name.startswith("gradient_"):
            rules |= set(re.findall(r'(?:SLOPE\(|\.op_type = )"(\w+)"', path.read_text()))
    page = (ROOT / "man/ort.3").read_text().partition("make lint compares\n")[2]
    listed = set(re.findall(r"\w+", page.partition("\n.Pp")[0]))
    check(len(rules) > 50, "lib/gradient/gradient_*.c: no rules found")
    check(rules == listed, f"man/ort.3, DIFFERENTIATION: differs in {sorted(rules ^ listed)}")


def lint_tiers():
    """Help, ort.h and the pages name the kernel tiers of the table in lib/kernel/dispatch.c."""
    table = (ROOT / "lib/kernel/dispatch.c").read_text()
    tiers = re.findall(r'^    \{"(\w+)", has_', table, re.M)
    check("scalar" in tiers, "lib/kernel/dispatch.c: the table of tiers is missing")
    for name, pattern in [("cmd/common/settings_run.def", r'"kernel tier: ([^"(]*) \('),
                          ("lib/ort.h", r"const char \*isa; *//\* ([^;]*);".replace("//", "/"))] + \
            [(f"man/{p.name}", r"\.It Fl -isa Ar NAME\nKernel tier:\n(.*?)\nOne that")
             for p in sorted((ROOT / "man").glob("ort-*.1")) if "Fl -isa" in p.read_text()]:
        found = re.search(pattern, (ROOT / name).read_text(), re.S)
        listed = re.findall(r"[a-z][a-z0-9_]+", re.sub(r"\.Cm|\bor\b", "", found[1])) if found else []
        check(listed == tiers, f"{name}: lists the kernel tiers {listed}, there are {tiers}")


def table_of(name):
    """The rows of a table in tests/cli/formats.bats."""
    table = re.search(rf'^{name}="\n(.*?)"$', (ROOT / "tests/cli/formats.bats").read_text(), re.S | re.M)
    return [line.split() for line in table[1].splitlines()] if table else []


def lint_outputs(endings, words):
    """Every ending is a row of the test that writes each, and every word of --format has one."""
    rows = table_of("OUTPUTS")
    listed = {row[0] for row in rows}
    check(listed == endings, f"tests/cli/formats.bats: OUTPUTS differs in {sorted(listed ^ endings)}")
    names = {row[4] for row in rows if len(row) > 4} - {"-"}
    check(words == names, f"tests/cli/formats.bats: OUTPUTS differs from the words of --format in "
                          f"{sorted(words ^ names)}")
    codecs = re.findall(r'^    \{"([a-z0-9 ]+)", .*, (\w+), \w+\},$', (ROOT / "lib/io/image.c").read_text(), re.M)
    check(len(codecs) > 5, "lib/io/image.c: the table of codecs is missing")
    written = {word for names, encode in codecs if encode != "NULL" for word in names.split()}
    check(words & {word for names, _ in codecs for word in names.split()} ==
          {names.split()[0] for names, encode in codecs if encode != "NULL"},
          "lib/io/image.c: WRITTEN differs from the codecs that write")
    for row in rows:
        image = row[0] in {word for names, _ in codecs for word in names.split()}
        check(not image or (row[1] == "read") == (row[0] not in written),
              f"tests/cli/formats.bats: OUTPUTS says of {row[0]} what lib/io/image.c doesn't")


def format_rows():
    """{name: (file, endings, words of --format)} of the rows of tensor formats."""
    rows = {}
    for path in sources("lib/io", ".c"):
        for row in re.findall(r"^const ort_format_row ort_format_row_\w+ = \{(.*?)^\};", path.read_text(),
                              re.S | re.M):
            fields = dict(re.findall(r'^    \.(\w+) = (?:"([^"]*)"|WRITTEN\(" "\)),$', row, re.M))
            if fields.get("words") == "":
                macro = re.search(r"^#define WRITTEN\(comma\) (.*)$", path.read_text(), re.M)
                fields["words"] = " ".join(re.findall(r'"(\w+)"', macro[1]))
            rows[fields["name"]] = (path, fields["endings"], fields.get("words", fields["name"]))
    return rows


def lint_formats():
    """Every ending of a format's row stands in the tests that read and write each in every way, and every
    name in ort-formats(5)."""
    rows = format_rows()
    table = set(re.findall(r"^X\((\w+)\)", (ROOT / "lib/io/formats.def").read_text(), re.M))
    check(table == set(rows), f"lib/io/formats.def: differs in {sorted(table ^ set(rows))}")
    endings = {word for _, words, _ in rows.values() for word in words.split()}
    listed = {row[0] for row in table_of("INPUTS")}
    check(len(endings) > 20, "lib/io: the rows of formats are missing")
    check(listed == endings, f"tests/cli/formats.bats: INPUTS differs in {sorted(listed ^ endings)}")
    lint_outputs(endings, {word for _, _, words in rows.values() for word in words.split()})
    page = (ROOT / "man/ort-formats.5").read_text()
    for name in rows:
        check(re.search(rf"\b{name}\b", page, re.I), f"man/ort-formats.5: says nothing of {name}")


ROOMS = include_table()
CODE = code_of("lib", "cmd", "tests", "examples")
lint_includes(ROOMS)
lint_sizes(ROOMS)
lint_asserts(asserts.count_asserts(ROOT))
USES = find_uses(ROOT / sys.argv[1], "lib")
lint_calls(ROOMS, USES)
lint_circles(USES)
for TOOL in sorted({path.parent.name for path in sources("cmd", ".c")}):
    lint_circles(find_uses(ROOT / sys.argv[1], f"cmd/{TOOL}"), f"cmd/{TOOL}")
lint_rules(ROOMS)
lint_passes()
lint_shared(CODE)
lint_idioms(CODE)
lint_negations({str(path.relative_to(ROOT)): path.read_text() for path in sources("tests/cli", ".bats")})
lint_formats()
lint_tiers()
lint_hostile()
lint_text()
lint_first_elements()
lint_attributes()
lint_loops()
lint_man_pages()
lint_gradient_rules()
for line in failures:
    print("not ok", line)
print(f"{checks - len(failures)} passed, {len(failures)} failed, 0 skipped")
sys.exit(1 if failures else 0)
