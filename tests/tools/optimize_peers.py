"""The optimized files that bench_optimize.py compares: ours and those of the peers, each with the
best time of the process that made it. Peers' files depend on nothing of this tree and are kept
between runs (a row of made.json names the source's size and date).
"""
import json
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
VENV = pathlib.Path(sys.executable).parent

OURS = {"default": [], "10x": ["--max-growth", "10x"], "contrib": ["--contrib"],
        "contrib 10x": ["--contrib", "--max-growth", "10x"]}
ONCE_BYTES = 64 << 20  # a larger model is written once, not for the best of several times
PEERS = ("onnxslim", "onnxsim", "ort basic", "ort extended")


def command(who, tool, source, target):
    """The command line that writes `target`."""
    if who in OURS:
        return [tool, source, "-q", "--no-verify", *OURS[who], "-o", target]
    if who in ("onnxslim", "onnxsim"):
        return [VENV / who, source, target]
    return [sys.executable, HERE / "optimize_peers.py", who.split()[1], source, target]


def file_bytes(path):
    """With the data files beside it: NAME.data, or what onnxsim and onnxslim call theirs."""
    return sum(p.stat().st_size for p in path.parent.glob(path.name + "*"))


def make(who, tool, source, target, repeats, limit_s=1200):
    """{"seconds": best, "bytes": n}, or {"error": why}."""
    best = None
    for _ in range(repeats):
        for old in target.parent.glob(target.name + "*"):
            old.unlink()
        begin = time.perf_counter()
        try:
            done = subprocess.run(list(map(str, command(who, tool, source, target))), timeout=limit_s,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        except subprocess.TimeoutExpired:
            return {"error": f"not done after {limit_s} s"}
        seconds = time.perf_counter() - begin
        if done.returncode or not target.exists():
            lines = done.stdout.decode(errors="replace").strip().splitlines() or [""]
            return {"error": f"exit {done.returncode}: {lines[-1][:160]}"}
        best = seconds if best is None else min(best, seconds)
    return {"seconds": best, "bytes": file_bytes(target)}


def make_all(tool, source, folder, ours_repeats=3):
    """Ours anew, the peers' unless they are there: {who: {"path", ...}}."""
    folder.mkdir(parents=True, exist_ok=True)
    index = folder / "made.json"
    state = os.stat(source)
    stamp = [state.st_size, int(state.st_mtime)]
    kept = json.loads(index.read_text()) if index.exists() else {}
    if kept.get("stamp") != stamp:
        kept = {"stamp": stamp}
    made = {}
    for who in (*OURS, *PEERS):
        target = folder / f"{who.replace(' ', '_')}.onnx"
        peer = who in PEERS
        if not (peer and who in kept):
            once = peer or state.st_size > ONCE_BYTES
            kept[who] = make(who, tool, source, target, 1 if once else ours_repeats)
            index.write_text(json.dumps(kept, indent=1))
        made[who] = {**kept[who], "path": target}
    return made


def main():
    """usage: optimize_peers.py basic|extended MODEL OUT: onnxruntime's own offline file."""
    from onnx_runs import session  # pylint: disable=import-outside-toplevel
    level, source, target = sys.argv[1:]
    session(source, level, target)


if __name__ == "__main__":
    main()
