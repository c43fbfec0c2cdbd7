"""ONNX's node tests with another provider: what it claims must run there, and give the expected values.

usage: check_provider.py [--only GLOB] [--options :KEY=VALUE...] [--of-largest X] [--ignore FILE] [--types FILE]
                         [--provider-lib LIB] PROVIDER BIN PROGRAM FOLDER...

PROGRAM is tests/onnx/conformance. It runs the tests of each operator that the provider lists (ort-inspect
--supports), all that is claimed on the device (cost=off). A table tells of each operator in how many of its tests a
node of it was on the device, of which element types (of first operands), and in how many any node was. A wrong number
is a failure, and so is, where tests aren't chosen (--only), an operator of the list that ran nowhere but on the host.

--types FILE names the element types of each operator that are claimed, a line for each: "DOMAIN OP TYPE...". What
stands there and ran nowhere on the device is a failure, and so is what ran and doesn't stand there, and an operator
that is on one list alone. --print-types prints such lines of what ran.

Without a device the whole is skipped, and says so.
"""
import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys


def with_library(args):
    return ["--provider-lib", args.provider_lib] if args.provider_lib else []


def listed_operators(args):
    done = subprocess.run([args.bin / "ort-inspect", "--supports", "--json", *with_library(args)], capture_output=True,
                          text=True, check=True)
    return {(o["domain"], o["op_type"]) for o in json.loads(done.stdout)["operators"]
            if args.provider in o["providers"]}


def has_device(args):
    done = subprocess.run([args.bin / "ort-inspect", "--providers", "--json", *with_library(args)], capture_output=True,
                          text=True)
    own = [p for p in json.loads(done.stdout)["providers"] if p["name"] == args.provider] if not done.returncode else []
    return bool(own and own[0].get("devices"))


class Seen:
    """What PROGRAM said of all folders."""

    def __init__(self):
        self.own, self.any, self.tests = (collections.Counter() for _ in range(3))
        self.types = collections.defaultdict(collections.Counter)
        self.passed = self.failed = self.skipped = 0

    def fail(self, line):
        self.failed += 1
        print(f"not ok {line}")

    def read(self, folder, text):
        count = re.search(r"(\d+) passed, (\d+) failed, (\d+) skipped", text)
        if not count:
            self.fail(f"{folder}: {text.strip()}")
            return
        self.passed, self.failed = self.passed + int(count[1]), self.failed + int(count[2])
        self.skipped += int(count[3])
        print("".join(f"not ok {line}\n" for line in text.splitlines() if re.match("FAIL |UNSUPPORTED ", line)), end="")
        for domain, op, own, tests, any_node in re.findall(r"^first (\S+) (\S+) (\d+) of (\d+), (\d+)$", text, re.M):
            self.own[domain, op] += int(own)
            self.tests[domain, op] += int(tests)
            self.any[domain, op] += int(any_node)
        for domain, op, kind, own in re.findall(r"^type (\S+) (\S+) (\S+) (\d+)$", text, re.M):
            self.types[domain, op][kind] += int(own)


def read_types(path):
    lines = [line.split() for line in path.read_text().splitlines() if line and line[0] != "#"]
    return {(domain, op): set(kinds) for domain, op, *kinds in lines}


def judge_types(seen, listed, claimed):
    for op in sorted(listed ^ claimed.keys()):
        seen.fail(f"{op[0]}.{op[1]}: " + ("claimed, and the list of types lacks it" if op in listed else
                                          "on the list of types, and nobody claims it"))
    for op, kinds in sorted(claimed.items()):
        for kind in sorted(kinds - seen.types[op].keys()):
            seen.fail(f"{op[0]}.{op[1]} of {kind}: claimed, and ran nowhere but on the host")
        for kind in sorted(seen.types[op].keys() - kinds):
            seen.fail(f"{op[0]}.{op[1]} of {kind}: it ran there, and the list of types lacks it")


def print_table(args, seen, listed):
    print(f"| operator | tests | its node on {args.provider} | any node | its element types |\n"
          "| --- | --: | --: | --: | --- |")
    for op in sorted(listed):
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(seen.types[op].items()))
        print(f"| {op[0]}.{op[1]} | {seen.tests[op]} | {seen.own[op]} | {seen.any[op]} | {kinds} |")
    print(f"on {args.provider}: a node of {sum(seen.any.values())} of {sum(seen.tests.values())} tests, of "
          f"{sum(count > 0 for count in seen.own.values())} of {len(listed)} operators")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="*")
    parser.add_argument("--options", default="")
    parser.add_argument("--of-largest", default="0", help="a share of the largest of an output that floats may differ by")
    parser.add_argument("--ignore", default="/dev/null", help="tests that aren't expected to pass, as PROGRAM reads them")
    parser.add_argument("--types", type=pathlib.Path)
    parser.add_argument("--print-types", action="store_true")
    parser.add_argument("--provider-lib")
    parser.add_argument("provider")
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    args = parser.parse_args()
    if not has_device(args):
        print(f"skip {args.provider}: there is no device of it here\n0 passed, 0 failed, 1 skipped")
        return 0
    listed, seen = listed_operators(args), Seen()
    for folder in args.folders:
        done = subprocess.run([args.program, "--ignore", args.ignore, "--filter", args.only, "--list-failures",
                               *with_library(args), "--provider", f"{args.provider}{args.options}:cost=off,cpu",
                               "--operators", ",".join(sorted({op for _, op in listed})), "--of-largest",
                               args.of_largest, folder], capture_output=True, text=True)
        seen.read(folder, done.stdout + (done.stderr if done.returncode > 1 else ""))
    for op in sorted(listed):
        if not seen.own[op] and (args.only == "*" or seen.tests[op]):
            seen.fail(f"{op[0]}.{op[1]}: claimed, and ran nowhere but on the host" +
                      ("" if seen.tests[op] else ": no test is for it"))
    if args.types:
        judge_types(seen, listed, read_types(args.types))
    print_table(args, seen, listed)
    if args.print_types:
        print("\n".join(" ".join([*op, *sorted(seen.types[op])]) for op in sorted(listed)))
    print(f"{seen.passed} passed, {seen.failed} failed, {seen.skipped} skipped")
    return seen.failed != 0 or not seen.passed


if __name__ == "__main__":
    sys.exit(main())
