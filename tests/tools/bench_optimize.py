#!/usr/bin/env python3
"""ort-optimize beside onnxslim, onnxsim and onnxruntime's own offline files (basic, extended), on
every model of MODELS and every filled topology.

usage: bench_optimize.py BENCH SCRATCH DIR... [--only GLOB] [--no-times] [--no-runs] [--rounds N]

Node count: subgraphs and function bodies included, Constant nodes not. A peer's file counts where
onnxruntime, unoptimized, computes with it what the original gives. Portable files hold no operator
outside of ai.onnx that the source doesn't hold; beside files with others (onnxruntime's extended
ones) stands what --contrib writes. In the columns without 10x a peer's file counts only when it is at most 1 %
larger than the source.

BENCH is tests/bench/bench. Peers' files stay in SCRATCH from run to run; results.json there
holds what the table shows. The last lines are the gates, each with what fails it; the exit status
is 1 when one does.
"""
import argparse
import fnmatch
import json
import pathlib
import shutil
import sys

import onnx

from onnx_runs import differ, inputs_of, on_codes, session, tolerances
from optimize_peers import OURS, PEERS, make_all
from optimize_times import process_times, run_ratio

BUILT = pathlib.Path(__file__).resolve().parents[2] / "build/bin/ort-optimize"
CODES, MEANINGLESS = 0.03, 0.1


# ---- what a file is

def walk(graph, others):
    """Nodes of a graph or function and of the bodies in it; operators outside of ai.onnx join
    `others`, as (domain, name)."""
    count = 0
    for node in graph.node:
        domain = "" if node.domain == "ai.onnx" else node.domain
        count += node.op_type != "Constant" or domain != ""
        if domain:
            others.add((domain, node.op_type))
        for attribute in node.attribute:
            for body in ([attribute.g] if attribute.HasField("g") else []) + list(attribute.graphs):
                count += walk(body, others)
    return count


def look(path):
    model = onnx.load(str(path), load_external_data=False)
    others = set()
    nodes = walk(model.graph, others) + sum(walk(f, others) for f in model.functions)
    return nodes, {o for o in others if o[0] not in {f.domain for f in model.functions}}


class Reference:
    """The original's outputs; `why`: there are none, and nothing can be compared."""

    def __init__(self, folder):
        self.folder, self.why, self.path = folder, "", folder / "model.onnx"
        self.rtol, self.atol = tolerances(folder)
        # Weights that mean nothing, on codes: one rounding the other way spreads through all layers.
        loose = not (folder / "meta.json").exists()
        self.loose = MEANINGLESS if loose and ("int8" in folder.name or "int4" in folder.name) else 0
        try:
            model = session(self.path)
            self.feeds = inputs_of(folder, model)
            self.names = [o.name for o in model.get_outputs()]
            self.wanted = model.run(None, self.feeds)
            again = model.run(None, self.feeds)
        except Exception as error:  # noqa: BLE001 - whatever onnxruntime refuses
            self.why = str(error).splitlines()[0]
            return
        if any(differ(a, b) for a, b in zip(self.wanted, again)):
            self.why = "it differs from run to run"

    def judge(self, path):
        """"" when the file computes the same, else what is wrong with it."""
        try:
            model = session(path)
            if [o.name for o in model.get_outputs()] != self.names:
                return "other outputs"
            feeds = {i.name: self.feeds[i.name] for i in model.get_inputs()}
            got = model.run(None, feeds)
        except Exception as error:  # noqa: BLE001
            return str(error).splitlines()[0][:160]
        codes = self.loose or (CODES if on_codes(path) and not on_codes(self.path) else 0)
        bad = [name for name, a, b in zip(self.names, self.wanted, got)
               if differ(a, b, codes, self.rtol, self.atol)]
        return f"differs in {', '.join(bad)[:120]}" if bad else ""


# ---- one model

def candidate(made, reference, source_others):
    if "error" in made:
        return {"error": made["error"]}
    nodes, others = look(made["path"])
    verdict = reference.judge(made["path"]) if not reference.why else ""
    return {"nodes": nodes, "bytes": made["bytes"], "seconds": made["seconds"], "verdict": verdict,
            "portable": others <= source_others}


def measure(folder, scratch, settings):
    reference = Reference(folder)
    source_nodes, source_others = look(reference.path)
    row = {"name": folder.name, "nodes": source_nodes, "bytes": reference.path.stat().st_size,
           "why": reference.why, "files": {}}
    home = scratch / folder.name
    made = make_all(settings.tool, reference.path, home)
    for who, file in made.items():
        row["files"][who] = candidate(file, reference, source_others)
    if settings.times:
        row["times"] = process_times(settings.tool, settings.bench, reference.path, home)
    if settings.runs and not reference.why and not row["files"]["default"].get("error"):
        ratio = run_ratio(reference.path, made["default"]["path"], reference.feeds, settings.rounds)
        if ratio[1] > 1:  # one in forty does by chance: a second sample of twice the size decides
            ratio = run_ratio(reference.path, made["default"]["path"], reference.feeds,
                              2 * settings.rounds + 1)
        row["run_ratio"] = ratio
    for who in OURS:  # the peers' stay
        for path in made[who]["path"].parent.glob(made[who]["path"].name + "*"):
            path.unlink()
    return row


def best_of(row, portable, any_size):
    """(nodes, who) of the smallest admissible file of a peer, or None."""
    fits = [(f["nodes"], who) for who, f in row["files"].items()
            if who in PEERS and "error" not in f and not f["verdict"] and
            (f["portable"] or not portable) and (any_size or f["bytes"] <= 1.01 * row["bytes"])]
    return min(fits, default=None)


# ---- the table

RIVALS = {"default": (True, False), "contrib": (False, False), "10x": (True, True),
          "contrib 10x": (False, True)}


def cell(row, who):
    mine, best = row["files"][who], best_of(row, *RIVALS[who])
    if "error" in mine:
        return "error"
    mark = "" if not best else "*" if mine["nodes"] > best[0] else ""
    return f"{mine['nodes']}{mark} ({best[0] if best else '-'})"


def percent(part, whole):
    return f"{100 * part / whole:.1f}" if whole else "-"


def print_heads():
    print("Nodes: ours (the best admissible peer's), * more than that. Bytes: of the source's, in percent. "
          "Run: in onnxruntime,\noptimized / original. Passes: load and passes / a session's creation "
          "at level extended; process: the whole / that.\n")
    print("| model | nodes | default | contrib | 10x | contrib 10x | bytes | verdict | run | passes "
          "| process | /onnxslim | /onnxsim |\n| --- |" + " --: |" * 6 + " --- |" + " --: |" * 5)


def print_row(row):
    mine, times = row["files"]["default"], row.get("times", {})
    ratio = row.get("run_ratio")
    created = times.get("creation_ms")

    def of_creation(key):
        return f"{times[key] / created:.2f}" if created else "-"

    def of_peer(who):
        peer = row["files"][who]
        return f"{times['process_ms'] / 1e3 / peer['seconds']:.4f}" if times and "seconds" in peer else "-"
    verdict = row["why"] and "not compared" or mine.get("error") or mine["verdict"] or "agrees"
    cells = [row["name"], row["nodes"], *(cell(row, who) for who in RIVALS),
             percent(mine.get("bytes", 0), row["bytes"]), verdict,
             f"{ratio[0]:.3f} [{ratio[1]:.3f} {ratio[2]:.3f}]" if ratio else "-",
             of_creation("passes_ms"), of_creation("process_ms"),
             of_peer("onnxslim"), of_peer("onnxsim")]
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


# ---- the gates

def counts_gate(rows, who):
    return [(r["name"], f"{r['files'][who].get('nodes', 'error')} > {best[0]} of {best[1]}")
            for r in rows if (best := best_of(r, *RIVALS[who])) and
            ("error" in r["files"][who] or r["files"][who]["nodes"] > best[0])]


def time_gate(rows, key, share):
    return [(r["name"], f"{r['times'][key]:.2f} ms of {share * r['times']['creation_ms']:.2f}")
            for r in rows if "creation_ms" in r.get("times", {}) and
            r["times"][key] > share * r["times"]["creation_ms"]]


def peer_time_gate(rows, who):
    return [(r["name"], f"{r['times']['process_ms']:.1f} ms of {100 * r['files'][who]['seconds']:.1f}")
            for r in rows if r.get("times") and "seconds" in r["files"][who] and
            r["times"]["process_ms"] > 100 * r["files"][who]["seconds"]]


def gates(rows):
    """(what, how many it was asked of, [(model, why it fails)])."""
    compared = [r for r in rows if not r["why"]]
    yield ("our files agree with the original", len(compared) * len(OURS),
           [(r["name"], f"{who}: {f.get('error') or f['verdict']}") for r in compared
            for who, f in r["files"].items() if who in OURS and (f.get("error") or f["verdict"])])
    yield ("never larger than the source", len(rows) * 2,
           [(r["name"], f"{who}: {r['files'][who]['bytes']} > {r['bytes']} bytes") for r in rows
            for who in ("default", "contrib") if r["files"][who].get("bytes", 0) > r["bytes"]])
    words = {"default": "no more nodes than the best portable file, at most 1 % larger",
             "contrib": "--contrib: no more than the best of all, at most 1 % larger",
             "10x": "--max-growth 10x: no more than the best portable file",
             "contrib 10x": "--contrib --max-growth 10x: no more than the best of all"}
    for who, text in words.items():
        yield text, sum(best_of(r, *RIVALS[who]) is not None for r in rows), counts_gate(rows, who)
    timed = [r for r in rows if "run_ratio" in r]
    yield ("no slower in onnxruntime (the 95 % interval reaches 1)", len(timed),
           [(r["name"], "{:.3f} [{:.3f} {:.3f}]".format(*r["run_ratio"])) for r in timed
            if r["run_ratio"][1] > 1])
    created = sum("creation_ms" in r.get("times", {}) for r in rows)
    yield ("load and passes: a fifth of a session's creation", created,
           time_gate(rows, "passes_ms", 0.2))
    yield ("the whole process: no longer than that creation", created,
           time_gate(rows, "process_ms", 1))
    for who in ("onnxslim", "onnxsim"):
        yield (f"the whole process: a tenth of {who}",
               sum("times" in r and "seconds" in r["files"][who] for r in rows),
               peer_time_gate(rows, who))


def print_gates(rows):
    failed = 0
    print()
    for what, count, bad in gates(rows):
        print(f"{'ok' if not bad else 'not ok'}: {what}: {count - len(bad)} of {count}")
        for name, why in bad:
            print(f"    {name}: {why}")
        failed += bool(bad)
    for row in rows:
        for who, file in row["files"].items():
            if who in PEERS and (file.get("error") or file["verdict"]):
                print(f"left out: {row['name']}, {who}: {file.get('error') or file['verdict']}")
        if row["why"]:
            print(f"not compared: {row['name']}: {row['why']}")
    return failed


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("bench", type=pathlib.Path)
    parser.add_argument("scratch", type=pathlib.Path)
    parser.add_argument("folders", type=pathlib.Path, nargs="+")
    parser.add_argument("--only", default="*")
    parser.add_argument("--no-times", dest="times", action="store_false")
    parser.add_argument("--no-runs", dest="runs", action="store_false")
    parser.add_argument("--rounds", type=int, default=15)
    return parser.parse_args()


def main():
    settings = parse()
    settings.scratch.mkdir(parents=True, exist_ok=True)
    settings.tool = settings.scratch / "ort-optimize"  # a build meanwhile doesn't disturb
    shutil.copy(BUILT, settings.tool)
    folders = [f for top in settings.folders for f in sorted(top.iterdir())
               if (f / "model.onnx").exists() and fnmatch.fnmatch(f.name, settings.only)]
    print_heads()
    rows = []
    for folder in folders:
        rows.append(measure(folder, settings.scratch, settings))
        print_row(rows[-1])
        (settings.scratch / "results.json").write_text(json.dumps(rows, indent=1))
    return print_gates(rows) > 0 or not rows


if __name__ == "__main__":
    sys.exit(main())
