"""known.py - the differences that stay: a rule here says which cases, the line of the same name in
tests/fuzz/known.txt quotes the sentence of the specification that decides them. A rule without a
line, or a line without a rule, is an error."""
import pathlib

FILE = pathlib.Path(__file__).resolve().parents[1] / "known.txt"
RULES = {}
MOST = 20  # lines


def rule(name):
    def register(function):
        RULES[name] = function
        return function
    return register


def load():
    lines = [line.split(None, 1) for line in FILE.read_text().splitlines()
             if line.strip() and not line.startswith("#")]
    names = {line[0] for line in lines}
    if names != set(RULES):
        raise SystemExit(f"{FILE}: lines and rules differ: {sorted(names ^ set(RULES))}")
    if len(lines) > MOST:
        raise SystemExit(f"{FILE}: {len(lines)} lines, at most {MOST}")


def explains(case, got, want):
    """True when a rule of this operator covers the case."""
    return any(name.split("/")[0] == case.name and function(case, got, want)
               for name, function in RULES.items())
