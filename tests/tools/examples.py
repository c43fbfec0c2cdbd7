#!/usr/bin/env python3
"""Print the commands of README.md, or of a manual page's EXAMPLES, one to a NUL.

usage: examples.py README.md | man/TOOL.1

In README.md a command stands behind "$ "; in a manual page it is what .Dl and .Bd -literal show.
Lines that end in a backslash or in | are continued.
"""
import re
import sys


def joined(lines):
    """Lines of commands with their continuations."""
    whole = ""
    for line in lines:
        whole += line if not whole else "\n" + line
        if not re.search(r"(\\|\|)$", line):
            yield whole
            whole = ""


def of_readme(text):
    """README's commands."""
    return joined(line.strip()[2:] for line in text.splitlines() if line.startswith("    $ "))


def of_page(text):
    """Commands of the section EXAMPLES of a page in mdoc."""
    section = re.search(r"^\.Sh EXAMPLES\n(.*?)(?=^\.Sh )", text, re.S | re.M).group(1)
    lines, literal = [], False
    for line in section.splitlines():
        if line.startswith(".Bd"):
            literal = True
        elif line.startswith(".Ed"):
            literal = False
        elif line.startswith(".Dl "):
            lines.append(line[4:])
        elif literal:
            lines.append(line)
    return joined(line.replace("\\e", "\\") for line in lines)


page = open(sys.argv[1]).read()
commands = of_readme(page) if sys.argv[1].endswith(".md") else of_page(page)
sys.stdout.write("".join(command + "\0" for command in commands))
