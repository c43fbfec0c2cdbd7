#!/usr/bin/env python3
"""Hold the options of all tools to the table of what each does twice, out of range and alone.

usage: check_options.py FOLDER_OF_TOOLS TABLE

Runs in a folder with the files of fixtures.py. What a tool has comes from `TOOL --help=table`; an option
without a row in the table is a finding, and so is a row without an option. Prints a line per finding and
closes with "N passed, N failed".
"""
import pathlib
import re
import subprocess
import sys

from tally import Tally

tally = Tally()
check = tally.check


def run(tool, *arguments):
    done = subprocess.run([str(tool), *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          timeout=60)
    return done.returncode, done.stderr


def refused(text, tool, *arguments):
    status, said = run(tool, *arguments)
    check(status == 2 and text in said, tool.name, *arguments, f": status {status}, wanted 2 and '{text}':",
          said[:200])


def known(tool):
    lines = subprocess.run([str(tool), "--help=table"], capture_output=True, text=True, check=True).stdout
    names, *rows = [line.split("\t") for line in lines.splitlines()]
    return {row[0]: dict(zip(names, row)) for row in rows}


def company(text):
    """Options with the value that is meant: "stack|level=0|output!-" is (stack, ""), (level, 0), (output, "")."""
    found = re.findall(r"([^|=!]+)(=?)(?:![^|]*|([^|]*))", "" if text == "-" else text)
    return [(name, value if sign else "") for name, sign, value in found]


def given(name, value):
    return [f"--{name}"] if value == "-" else \
        [f"--{name}{value}"] if value.startswith("=") else [f"--{name}", value]


def check_row(tool, name, fact, table):
    value, other, bad, idle = table[name]
    check((value == "-") == (fact["argument"] == "-"), tool.name, name, ": value in the table")
    for word, _ in company(fact["needs"]) + company(fact["excludes"]):
        check(word in table, tool.name, name, f": needs or excludes '{word}', which is no option")
    for word in [] if bad == "-" else bad.split(" "):
        if name in ("threads", "provider", "isa"):  # they may come from the environment: checked later
            refused(f"'{word}'" if name != "isa" else word, tool, *given(name, word), "--settings")
        else:
            refused(f"'{word}'", tool, *given(name, word))
    if other != "-" and (fact["again"] == "refused" or fact["key"] != "-"):
        refused("given twice", tool, *given(name, value), *given(name, other))
        status, said = run(tool, *given(name, value), *given(name, value), "--help")
        check(status == 0, tool.name, name, ": the same value twice:", said[:200])
    elif other != "-":
        status, said = run(tool, *given(name, value), *given(name, other), "--help")
        check(status == 0, tool.name, name, ": given twice:", said[:200])
    if fact["again"] == "last":
        shown = subprocess.run([str(tool), *given(name, value), *given(name, other), "--settings"],
                               capture_output=True, text=True).stdout
        lines = [line.split() for line in shown.splitlines()]
        wanted = str(2**30) if other == "1G" else other
        check([name, wanted] in [line[:2] for line in lines] or other.startswith("avx"), tool.name, name,
              ": the last value should hold:", shown)
    for word, meant in company(fact["excludes"]):
        if word in table:
            refused("exclude each other", tool, *given(name, value), *given(word, meant or table[word][0]))
    if fact["verbs"] != "-" and idle == "acts":
        refused("needs a verb", tool, *given(name, value), "chain.onnx")
    check((idle == "needs") == (fact["needs"] != "-"), tool.name, name, f": alone: '{idle}', needs",
          fact["needs"])
    if idle == "needs":
        refused("needs", tool, *given(name, value), "chain.onnx")
    elif idle.startswith("! "):
        refused("", tool, *idle[2:].split())
    else:
        check(idle == "acts", tool.name, name, f": alone: '{idle}'")


def main():
    table = {}
    for line in pathlib.Path(sys.argv[2]).read_text().splitlines():
        if not line.startswith("#"):
            tool, name, *cells = line.split("\t")
            check(len(cells) == 4 and name not in table.setdefault(tool, {}), tool, name, ": bad row")
            table[tool][name] = cells
    tools = sorted(pathlib.Path(sys.argv[1]).glob("ort-*"))
    check({t.name for t in tools} == set(table), "tools:", [t.name for t in tools], "rows:", sorted(table))
    for tool in tools:
        options = known(tool)
        rows = table.get(tool.name, {})
        for name in sorted(set(options) ^ set(rows)):
            check(False, tool.name, f"--{name}:", "no row in the table" if name in options else "no such option")
        for name in sorted(set(options) & set(rows)):
            check_row(tool, name, options[name], rows)
    return tally.close()


sys.exit(main())
