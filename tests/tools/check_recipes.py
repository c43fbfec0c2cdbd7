#!/usr/bin/env python3
"""check_recipes.py BIN [PYTHON | parallel] - the recipes for more than one machine, each with a worker that is killed half-way.

Several workers of this machine stand for several machines: processes under GNU parallel, tasks of a Slurm cluster of one
node that is started here, workers of Dask (PYTHON has it; none: skipped); or those of GNU parallel alone. What each writes must be the bytes of one run.
Prints "N passed, N failed, N skipped".
"""
import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(sys.argv[1]).resolve()
MODEL = ROOT / "models/digits.onnx"
FILES, PARTS = 50, 7
passed = failed = skipped = 0

# An ort-run whose run of one part is killed, once. It stops the real one when it has begun.
KILLED = """#!/bin/sh
case "$*" in
*"--shard 3/"*)
    if mkdir "$KILLED_ONCE" 2>/dev/null; then
        {bin}/ort-run "$@" &
        kill -9 $!
        kill -9 $$
    fi ;;
esac
exec {bin}/ort-run "$@"
"""


def say(good, name, why=""):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    print(f"{'ok' if good else 'FAIL'} {name}{': ' + why if why and not good else ''}", flush=True)


def skip(name, why):
    global skipped
    if os.environ.get("CI") == "true":
        say(False, name, why)
        return
    skipped += 1
    print(f"skip {name}: {why}", flush=True)


def run(command, **variables):
    return subprocess.run(command, capture_output=True, text=True, timeout=240, env=os.environ | variables)


def make_inputs(folder):
    """Pictures of digits with their numbers scaled, and what one run makes of them, in both formats."""
    (folder / "in").mkdir()
    for i in range(FILES):
        subprocess.run([BIN / "ort-tensor", ROOT / "models/images/digit_7_008.png", "--gray", "--float", "--scale",
                        f"{(i + 1) / FILES}", "-o", folder / f"in/p{i:03}.npy"], check=True)
    for name in ("all.npz", "all.npy"):
        subprocess.run([BIN / "ort-run", MODEL, folder / "in", "-o", folder / name], check=True)


def with_killed(folder, name):
    """A PATH whose ort-run is killed once, and the folder that says so."""
    path = folder / f"{name}.bin"
    path.mkdir()
    (path / "ort-run").write_text(KILLED.format(bin=BIN))
    (path / "ort-run").chmod(0o755)
    once = folder / f"{name}.once"
    return {"PATH": f"{path}:{BIN}:{os.environ['PATH']}", "KILLED_ONCE": str(once)}, once


def same(a, b):
    return a.exists() and a.read_bytes() == b.read_bytes()


def gnu_parallel(folder):
    name = "GNU parallel"
    if not shutil.which("parallel"):
        return skip(name, "isn't here (apt-get install parallel)")
    variables, once = with_killed(folder, "parallel")
    out = folder / "parallel.npz"
    command = ["sh", ROOT / "recipes/parallel.sh", MODEL, folder / "in", str(PARTS), out]
    told = run(command, **variables)
    say(told.returncode == 0 and once.exists() and same(out, folder / "all.npz"), f"{name}: a part is killed, and run again",
        told.stderr)
    # Every try is killed: no result, and the next call goes on from the parts that are there.
    out.unlink(missing_ok=True)
    broken = folder / "broken.bin"
    broken.mkdir()
    (broken / "ort-run").write_text(f'#!/bin/sh\ncase "$*" in *"--shard 3/"*) kill -9 $$ ;; esac\nexec {BIN}/ort-run "$@"\n')
    (broken / "ort-run").chmod(0o755)
    told = run(command, PATH=f"{broken}:{BIN}:{os.environ['PATH']}")
    say(told.returncode != 0 and not out.exists(), f"{name}: a part that can't be had is a failure without a result")
    parts = folder / f"parallel.npz.parts/of-{PARTS}"
    before = {f.name: f.stat().st_mtime_ns for f in parts.glob("*.npz")}
    (broken / "ort-run").write_text(f'#!/bin/sh\necho "$@" >>{folder}/calls\nexec {BIN}/ort-run "$@"\n')
    told = run(command, PATH=f"{broken}:{BIN}:{os.environ['PATH']}")
    calls = (folder / "calls").read_text().count("--shard")
    say(len(before) == PARTS - 1 and told.returncode == 0 and calls == 1 and same(out, folder / "all.npz"),
        f"{name}: the next call computes what lacks, and that alone", told.stderr)
    # Parts of another number of them are left alone: these are no results of this call.
    (parts.parent / f"of-{PARTS - 2}").mkdir(parents=True)
    for k in range(1, PARTS - 1):
        shutil.copy(folder / "all.npz", parts.parent / f"of-{PARTS - 2}/part.{k}.npz")
    out.unlink(missing_ok=True)
    told = run(command, PATH=f"{BIN}:{os.environ['PATH']}")
    say(told.returncode == 0 and same(out, folder / "all.npz"), f"{name}: parts of another number aren't taken", told.stderr)
    return None


# ---- Slurm

def free_port():
    with socket.socket() as s:
        s.bind(("", 0))
        return s.getsockname()[1]


SLURM = """ClusterName=one
SlurmctldHost={host}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
SlurmctldPort={port}
SlurmdPort={port2}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SchedulerParameters=sched_interval=1,bf_interval=1
NodeName={host} CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


@contextlib.contextmanager
def cluster(folder):
    """A Slurm cluster of this machine alone; the variables that its tools read."""
    for name in ("state", "spool", "munge"):
        (folder / name).mkdir()
    (folder / "munge/key").write_bytes(os.urandom(1024))
    (folder / "munge/key").chmod(0o400)
    conf = folder / "slurm.conf"
    conf.write_text(SLURM.format(folder=folder, host=socket.gethostname(), port=free_port(), port2=free_port(),
                                 user=subprocess.check_output(["id", "-un"], text=True).strip(), cpus=os.cpu_count()))
    variables = {"SLURM_CONF": str(conf)}
    m = folder / "munge"
    subprocess.run(["munged", "--force", f"--key-file={m}/key", f"--socket={m}/socket", f"--pid-file={folder}/munged.pid",
                    f"--log-file={m}/log", f"--seed-file={m}/seed"], check=True)
    try:
        for daemon in ("slurmctld", "slurmd"):
            subprocess.run([daemon], check=True, env=os.environ | variables, capture_output=True)
        end = time.monotonic() + 30
        while "idle" not in run(["sinfo", "-h", "-o", "%T"], **variables).stdout:
            if time.monotonic() > end:
                raise RuntimeError("the cluster's node isn't idle after 30 s")
            time.sleep(0.5)
        yield variables
    finally:
        for pid in folder.glob("*.pid"):
            with contextlib.suppress(ValueError, ProcessLookupError):
                os.kill(int(pid.read_text()), signal.SIGTERM)
        time.sleep(1)


def wait_for_jobs(variables, seconds):
    end = time.monotonic() + seconds
    while run(["squeue", "-h"], **variables).stdout.strip() and time.monotonic() < end:
        time.sleep(0.5)


def slurm(folder):
    name = "Slurm"
    if not all(shutil.which(tool) for tool in ("munged", "slurmctld", "slurmd", "sbatch")):
        return skip(name, "isn't here (apt-get install slurm-wlm munge)")
    (folder / "slurm").mkdir()
    killed, once = with_killed(folder, "slurm")
    out = folder / "slurm.npz"
    with cluster(folder / "slurm") as variables:
        command = ["sh", ROOT / "recipes/slurm.sh", MODEL, folder / "in", str(PARTS), out]
        told = run(command, **variables, **killed)
        wait_for_jobs(variables, 120)
        say(told.returncode == 0 and once.exists() and not out.exists(), f"{name}: a killed task leaves no result", told.stderr)
        told = run(command, **variables, **killed)
        wait_for_jobs(variables, 120)
        say(told.returncode == 0 and same(out, folder / "all.npz"), f"{name}: the next array computes what lacks", told.stderr)
        out.unlink(missing_ok=True)
        slow = folder / "slow.bin"
        slow.mkdir()
        (slow / "ort-run").write_text(f'#!/bin/sh\n[ -e {folder}/go ] || sleep 60\nexec {BIN}/ort-run "$@"\n')
        (slow / "ort-run").chmod(0o755)
        told = run(command, **variables, PATH=f"{slow}:{BIN}:{os.environ['PATH']}")
        array = told.stdout.strip()
        end = time.monotonic() + 60
        running = ""
        while not running and time.monotonic() < end:
            running = run(["squeue", "-h", "-t", "R", "-o", "%i"], **variables).stdout.split("\n")[0]
            time.sleep(0.2)
        (folder / "go").touch()
        requeued = run(["scontrol", "requeue", running], **variables)
        subprocess.run(["pkill", "-f", f"sleep 60"], check=False)
        run(["scontrol", "update", f"jobid={running}", "StartTime=now"], **variables)
        wait_for_jobs(variables, 180)
        say(array and requeued.returncode == 0 and same(out, folder / "all.npz"), f"{name}: a task that is requeued starts again",
            requeued.stderr + run(["squeue"], **variables).stdout)
    return None


# ---- Dask

# A worker that is killed at the fortieth file that it reads.
DIES = """import os
import signal

import numpy as np

load, seen = np.load, []


def dies(path):
    seen.append(path)
    if len(seen) == 40:
        os.kill(os.getpid(), signal.SIGKILL)
    return load(path)


np.load = dies
"""


def dask(folder, python):
    name = "Dask"
    if not python:
        return skip(name, "its packages can't be had here")
    variables = {"PYTHONPATH": str(ROOT / "python"), "ORT_TOOLS_LIBRARY": str(ROOT / "build/lib/onnxruntime/libonnxruntime.so.1")}
    out = folder / "dask.npy"
    recipe = [python, ROOT / "recipes/dask_scores.py", MODEL, folder / "in", out]
    told = run([*recipe, "--workers", "2"], **variables)
    say(told.returncode == 0 and same(out, folder / "all.npy"), f"{name}: workers of its own", told.stderr[-800:])
    out.unlink(missing_ok=True)
    port = free_port()
    many = folder / "many"
    many.mkdir()
    for i in range(2000):
        (many / f"p{i:05}.npy").symlink_to(folder / f"in/p{i % FILES:03}.npy")
    subprocess.run([BIN / "ort-run", MODEL, many, "-o", folder / "many.npy"], check=True)
    environment = os.environ | variables
    talk = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    scheduler = subprocess.Popen([python, "-m", "distributed.cli.dask_scheduler", "--port", str(port), "--no-dashboard"],
                                 env=environment, **talk)
    (folder / "dies.py").write_text(DIES)
    worker = [python, "-m", "distributed.cli.dask_worker", f"tcp://127.0.0.1:{port}", "--no-nanny", "--nthreads", "1",
              "--no-dashboard", "--local-directory", folder]
    workers = [subprocess.Popen(command, env=environment, **talk)
               for command in ([*worker, "--preload", folder / "dies.py"], worker, worker)]
    try:
        recipe[3] = many
        told = run([*recipe, "--scheduler", f"tcp://127.0.0.1:{port}"], **variables)
        died = workers[0].wait(10) == -signal.SIGKILL
        say(told.returncode == 0 and died and same(out, folder / "many.npy"),
            f"{name}: one of three workers is killed in the middle of a batch", told.stderr[-800:])
    finally:
        for process in (*workers, scheduler):
            process.kill()
            process.wait()
    return None


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_inputs(folder)
        gnu_parallel(folder)
        if sys.argv[2:] != ["parallel"]:
            slurm(folder)
            dask(folder, sys.argv[2] if len(sys.argv) > 2 else None)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return failed != 0


sys.exit(main())
