#!/usr/bin/env python3
"""Hold every gate of every tool to the table of what it says: to the right thing, to the wrong one, to
nothing, to a part, to NaN. With --json the report's "gates" agree with the exit status.

usage: check_gates.py FOLDER_OF_TOOLS TABLE

Runs in a folder with the files of fixtures.py and adds its own. Prints a line per finding and closes with
"N passed, N failed".
"""
import json
import pathlib
import shutil
import subprocess
import sys

from fixtures import archive, initializer, model, node, npy, value_info
from tally import Tally

CASES = {"right", "wrong", "nothing", "part", "nan"}
REPORTS = {"ort-run", "ort-profile", "ort-tensor", "ort-quantize"}  # whose JSON has a list of gates
nan = float("nan")
tally = Tally()
check = tally.check


def put(name, data):
    path = pathlib.Path(name)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)


def prepare(tools):
    x, out = value_info("x", [2, 3]), value_info("out", [2, 3])
    three = [node("Relu", ["x"], ["a"]), node("Neg", ["x"], ["b"]), node("Exp", ["x"], ["c"])]
    put("many.onnx", model(three, [x], [value_info(n, [2, 3]) for n in "abc"]))
    put("fewer.onnx", model(three[:2], [x], [value_info(n, [2, 3]) for n in "ab"]))
    put("stranger.onnx", model([node("Sin", ["x"], ["other"])], [x], [value_info("other", [2, 3])]))
    put("makes_nan.onnx", model([node("Relu", ["x"], ["a"]), node("Neg", ["a"], ["b"]),
                                 node("Sub", ["b", "b"], ["z"]), node("Div", ["z", "z"], ["out"])], [x], [out]))
    weight = initializer("w", [2, 3], [1, 2, 3, 4, 5, 6])
    half = [node("Relu", ["x"], ["a"]), node("Sub", ["x", "x"], ["b"]), node("Exp", ["x"], ["c"])]
    put("many_half.onnx", model(half, [x], [value_info(n, [2, 3]) for n in "abc"]))
    put("id.onnx", model([node("Identity", ["x"], ["out"])], [x], [out]))
    put("neg.onnx", model([node("Neg", ["x"], ["out"])], [x], [out]))
    put("classes.npy", npy([2, 1], (2,), "<i8"))
    put("few_classes.npy", npy([2], (1,), "<i8"))
    put("warns.onnx", model([node("Add", ["x", "w"], ["out"])], [x], [out], [weight, weight]))
    put("nan_weight.onnx", model([node("Add", ["x", "w"], ["out"])], [x], [out],
                                 [initializer("w", [2, 3], [1, 2, nan, 4, 5, 6])]))
    large = initializer("large", [2, 3], [30000.0] * 6)  # of float16, too: x is lost in the sum
    put("coarse.onnx", model([node("Add", ["x", "large"], ["a"]), node("Sub", ["a", "large"], ["out"])], [x], [out],
                             [large]))
    shutil.copy(pathlib.Path(__file__).parents[2] / "models" / "digits.onnx", "digits.onnx")
    put("broken.onnx", model([node("Relu", ["absent"], ["out"])], [x], [out]))
    put("void.onnx", b"")
    put("void.npz", b"")
    put("nothing.npz", archive({}))
    put("nothing.json", b"{}")
    put("inputs/input_0.pb", b"")
    put("part_nan.onnx", model(three[:2] + [node("Sub", ["b", "b"], ["z"]), node("Div", ["z", "z"], ["out"])], [x],
                               [value_info(n, [2, 3]) for n in ("a", "out")]))
    put("empty.npy", npy([], (0, 3)))
    put("all_nan.npy", npy([nan] * 6, (2, 3)))
    put("nan.npy", npy([nan, 2, 3, 4, 5, 6], (2, 3)))
    put("near.npy", npy([1.01, -2, 3, -4, 5, -6], (2, 3)))
    put("nearly.npz", archive({"x.npy": npy([1.01, -2, 3, -4, 5, -6], (2, 3)),
                               "y.npy": npy([10, 20, 30, 40, 50, 0], (2, 3))}))
    put("few_points.npy", npy([2, 1, 1, 2], (2, 2)))
    put("few_labels.npy", npy([0, 0], (2,), "<i8"))
    put("nan_points.npy", npy([nan] * 6, (3, 2)))
    put("zeros.npy", npy([0, 0, 0], (3,), "<i8"))

    def made(*command):
        subprocess.run([str(tools / command[0]), *command[1:]], check=True, capture_output=True)
    made("ort-run", "many.onnx", "x.npy", "-o", "many.npz")
    made("ort-run", "many.onnx", "x.npy", "-o", "b=part.npz")
    made("ort-run", "chain.onnx", "x.npy", "-o", "chain.npy")
    for name in ("packed", "cut", "misfit"):
        made("ort-optimize", "weight.onnx", "--pack", "-o", name + ".onnx")
    made("ort-optimize", "nan_weight.onnx", "--pack", "-o", "nan_packed.onnx")
    pack = pathlib.Path("cut.onnx.pack")
    pack.write_bytes(pack.read_bytes()[:-40])
    shutil.copy("many.onnx", "misfit.onnx")


def agree(tool, command, status):
    """The gates of the JSON report say what the exit status says."""
    done = subprocess.run(["bash", "-c", command + " --json </dev/null"], capture_output=True, text=True)
    check(done.returncode == status, command, f"--json: status {done.returncode}, wanted {status}")
    try:
        report = json.loads(done.stdout)
    except json.JSONDecodeError:
        check(False, command, "--json: no JSON:", done.stdout[:100], done.stderr[:200])
        return
    if status > 1:
        check(report.get("error", {}).get("exit_status") == status, command, "--json: error", report)
    elif tool in REPORTS and "gates" in report:
        check(all(g["passed"] for g in report["gates"]) == (status == 0), command, "--json:", report["gates"])
    elif tool in REPORTS:
        check("comparisons" in report and
              any(c["differs"] or c["outputs_compared"] == 0 for c in report["comparisons"]) == (status == 1) or
              "--strict" in command, command, "--json: no gates")


def check_row(tool, case, wanted, command):
    status, warned = int(wanted.rstrip("wp")), wanted.endswith("w")
    check(status != 0 or case == "right" or wanted in ("0w", "0p"), command, ": may not pass")
    done = subprocess.run(["bash", "-c", command + " </dev/null"], capture_output=True, text=True, errors="replace")
    check(done.returncode == status, command, f": status {done.returncode}, wanted {status}:", done.stderr[:200])
    check((done.stderr == "") == (status == 0 and not warned) or case == "wrong" or status == 1, command,
          ": said", done.stderr[:200])
    if "-o -" not in command:
        agree(tool, command, status)


def main():
    tools = pathlib.Path(sys.argv[1]).resolve()
    prepare(tools)
    rows = {}
    for line in pathlib.Path(sys.argv[2]).read_text().splitlines():
        if line.startswith("#"):
            continue
        tool, gate, case, wanted, command = line.split("\t")
        check(case in CASES, line, ": no such case")
        rows.setdefault((tool, gate), set()).add(case)
        check_row(tool, case, wanted, command)
    for tool in sorted(tools.glob("ort-*")):
        table = subprocess.run([str(tool), "--help=table"], capture_output=True, text=True, check=True).stdout
        names, *options = [line.split("\t") for line in table.splitlines()]
        for option in options:
            fact = dict(zip(names, option))
            cases = rows.get((tool.name, fact["name"]), set())
            check(fact["gate"] == "-" or cases == CASES, tool.name, fact["name"], ": lacks", CASES - cases)
            check(fact["gate"] != "-" or not cases, tool.name, fact["name"], ": is no gate")
    return tally.close()


sys.exit(main())
