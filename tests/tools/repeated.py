#!/usr/bin/env python3
"""repeated.py - what share of the code stands in it twice.

Every .c, .h and .inc file of lib/ and cmd/ is cut into the tokens of C: identifiers, numbers, strings and
characters, as they are spelled, and every other sign by itself ("->" is two). Comments and #include lines are
left out; other directives stay. A token is repeated when it lies in a run of 40 tokens that stands somewhere
else as well, in the same file or in another. Two places count only where they don't overlap: a table of equal
rows doesn't repeat itself by one row. No run reaches from one file into the next.

Runs are compared exactly, by doubling: equal pairs of tokens get one number, then equal pairs of those, up to
runs of 32; a run of 40 is the 32 at its begin and the 32 that end with it. Figures are the repeated tokens over
all of them, whole and for each folder, whose repetitions may stand in another one.

repeated.py [--longest N] [--run TOKENS] [--limit PERCENT] [ROOT]
--longest prints the N longest runs, each with two of its places. --limit makes the exit status 1 above it.
"""
import argparse
import collections
import pathlib
import re
import sys

TOKEN = re.compile(r"""
    /\*.*?\*/ | //[^\n]* | ^[ \t]*\#[ \t]*include[^\n]*   # left out: these match without a group
  | ( "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'
    | [A-Za-z_]\w* | \.?\d(?:[eEpP][+-]|[\w.])*
    | [^\s\\] )""", re.X | re.S | re.M)


class code:
    """The tokens of all files behind each other as numbers, a number of its own after each file."""

    def __init__(self, root):
        self.tokens, self.places, numbers = [], [], {}
        for path in sorted(p for top in ("lib", "cmd") for p in (root / top).rglob("*")
                           if p.suffix in (".c", ".h", ".inc")):
            text, line, seen = path.read_text(), 1, 0
            name = str(path.relative_to(root))
            for match in TOKEN.finditer(text):
                if match[1]:
                    line += text.count("\n", seen, match.start())
                    seen = match.start()
                    self.tokens.append(numbers.setdefault(match[1], len(numbers)))
                    self.places.append((name, line))
            self.tokens.append(-len(self.tokens) - 1)
            self.places.append(None)


def number_runs(tokens, length):
    """For each position, the number of the run of so many tokens that begins there."""
    runs, size = tokens, 1
    while size < length:
        step = min(size, length - size)
        numbers = {}
        runs = [numbers.setdefault(pair, len(numbers)) for pair in zip(runs, runs[step:])]
        size += step
    return runs


def find_places(runs, length):
    """Lists of positions where one run begins, for runs with two places that don't overlap."""
    places = collections.defaultdict(list)
    for at, run in enumerate(runs):
        places[run].append(at)
    return [found for found in places.values() if found[-1] - found[0] >= length]


def mark(count, places, length):
    """A flag for each token: is it in a run that stands elsewhere too?"""
    marks = bytearray(count)
    for found in places:
        for at in found:
            if at - found[0] >= length or found[-1] - at >= length:
                marks[at:at + length] = b"\1" * length
    return marks


def shared_length(tokens, one, other):
    """How many tokens are equal from two positions on, until they differ or the first reaches the second."""
    length = 0
    while one + length < other and other + length < len(tokens) and \
            tokens[one + length] == tokens[other + length]:
        length += 1
    return length


def find_longest(tokens, places, wanted):
    """(length, position, other position) of the longest runs, none of which lies inside one before it."""
    pairs = []
    for found in places:
        for i, one in enumerate(found[:50]):
            for other in found[i + 1:50]:
                if one == 0 or tokens[one - 1] != tokens[other - 1]:
                    pairs.append((shared_length(tokens, one, other), one, other))
    longest, told = [], bytearray(len(tokens))
    for length, one, other in sorted(pairs, key=lambda pair: (-pair[0], pair[1:])):
        if len(longest) == wanted:
            break
        if not (told[one] and told[other]):
            longest.append((length, one, other))
            told[one:one + length] = told[other:other + length] = b"\1" * length
    return longest


def print_shares(source, marks):
    """One line for the whole and one for each folder: share, repeated tokens, all tokens."""
    total, repeated = collections.Counter(), collections.Counter()
    for place, marked in zip(source.places, marks):
        if place:
            folder = place[0].rpartition("/")[0]
            for where in ("lib + cmd", folder):
                total[where] += 1
                repeated[where] += marked
    print(f"{'share':>6}  {'repeated':>9}  {'tokens':>9}  where")
    for where in sorted(total, key=lambda name: (name != "lib + cmd", name)):
        share = 100 * repeated[where] / total[where]
        print(f"{share:5.1f}%  {repeated[where]:9,}  {total[where]:9,}  {where}")
    return 100 * repeated["lib + cmd"] / total["lib + cmd"]


def main():
    parser = argparse.ArgumentParser(description="Prints the share of C tokens that stand in the code twice.")
    parser.add_argument("--longest", type=int, default=0, metavar="N", help="print the N longest runs, too")
    parser.add_argument("--run", type=int, default=40, metavar="TOKENS", help="how long a run is (40)")
    parser.add_argument("--limit", type=float, metavar="PERCENT", help="fail above this share")
    parser.add_argument("root", nargs="?", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parents[2], help="a checkout (this one)")
    args = parser.parse_args()
    source = code(args.root)
    places = find_places(number_runs(source.tokens, args.run), args.run)
    share = print_shares(source, mark(len(source.tokens), places, args.run))
    for length, one, other in find_longest(source.tokens, places, args.longest):
        name, line = source.places[one]
        twin, at = source.places[other]
        print(f"{length:5} tokens  {name}:{line}  {twin}:{at}")
    return args.limit is not None and share > args.limit


if __name__ == "__main__":
    sys.exit(main())
