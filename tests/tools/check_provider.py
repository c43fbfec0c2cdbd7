"""ONNX's node tests with another provider: what it claims must run there, and give the expected values.

usage: check_provider.py [--only GLOB] [--options :KEY=VALUE...] [--of-largest X] PROVIDER BIN PROGRAM FOLDER...

PROGRAM is tests/onnx/conformance. It runs the tests of each operator that the provider lists (ort-inspect
--supports), all that is claimed on the device (cost=off), and tells in how many of them that operator's own node was
on the device. An operator of the list that has tests and in none of them is a failure, as is a wrong number; the
names of those that no test is for are printed.

Without a device the whole is skipped, and says so.
"""
import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys


def listed_operators(args):
    done = subprocess.run([args.bin / "ort-inspect", "--supports", "--json"], capture_output=True, text=True, check=True)
    return {(o["domain"], o["op_type"]) for o in json.loads(done.stdout)["operators"]
            if args.provider in o["providers"]}


def has_device(args):
    done = subprocess.run([args.bin / "ort-inspect", "--providers", "--json"], capture_output=True, text=True)
    own = [p for p in json.loads(done.stdout)["providers"] if p["name"] == args.provider] if not done.returncode else []
    return bool(own and own[0].get("devices"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="*")
    parser.add_argument("--options", default="")
    parser.add_argument("--of-largest", default="0", help="a share of the largest of an output that floats may differ by")
    parser.add_argument("provider")
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    args = parser.parse_args()
    if not has_device(args):
        print(f"skip {args.provider}: there is no device of it here\n0 passed, 0 failed, 1 skipped")
        return 0
    listed = listed_operators(args)
    ran, seen = collections.Counter(), collections.Counter()
    passed = failed = 0
    for folder in args.folders:
        done = subprocess.run([args.program, "--ignore", "/dev/null", "--filter", args.only, "--list-failures",
                               "--provider", f"{args.provider}{args.options}:cost=off,cpu", "--operators",
                               ",".join(sorted({op for _, op in listed})), "--of-largest", args.of_largest, folder],
                              capture_output=True, text=True)
        count = re.search(r"(\d+) passed, (\d+) failed", done.stdout)
        if not count:
            print(f"not ok {folder}: {(done.stdout + done.stderr).strip()}")
            failed += 1
            continue
        passed, failed = passed + int(count[1]), failed + int(count[2])
        print("".join(f"not ok {line}\n" for line in done.stdout.splitlines() if re.match("FAIL |UNSUPPORTED ", line)),
              end="")
        for domain, op, own, tests in re.findall(r"^first (\S+) (\S+) (\d+) of (\d+)$", done.stdout, re.M):
            ran[domain, op] += int(own)
            seen[domain, op] += int(tests)
    for op in sorted(listed):
        if seen[op] and not ran[op]:
            failed += 1
            print(f"not ok {op[0]}.{op[1]}: claimed, and ran nowhere but on the host")
    print(f"tests with a node of their operator on {args.provider}: " +
          ", ".join(f"{op[1]} {ran[op]} of {seen[op]}" for op in sorted(listed) if seen[op]))
    print("no test is for: " + (", ".join(f"{op[0]}.{op[1]}" for op in sorted(listed) if not seen[op]) or "none"))
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed != 0 or not passed


if __name__ == "__main__":
    sys.exit(main())
