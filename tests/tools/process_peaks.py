#!/usr/bin/env python3
"""Peak memory of each process of a command: what it held most of at one time (VmHWM), in the order of their starts.

usage: process_peaks.py COMMAND [ARGUMENT...]

A process that forks hands its pages to the child, which count for both; VmHWM of a child begins with what its parent
held then, not with what it ever held. The kernel keeps the peak, so looking now and then misses only what a process
gains in its last milliseconds.
"""
import os
import subprocess
import sys
import time

PAUSE_SECONDS = 0.002


def peak_of(pid):
    try:
        with open(f"/proc/{pid}/status") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    except (FileNotFoundError, ProcessLookupError):
        pass
    return 0


def children_of(pid):
    found = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as children:
                found += [int(child) for child in children.read().split()]
    except (FileNotFoundError, ProcessLookupError):
        pass
    return found


def run(command, **more):
    """Exit status, and the peak bytes of its processes: {pid: bytes}, oldest first."""
    process = subprocess.Popen([str(word) for word in command], **more)
    peaks = {process.pid: 0}
    while process.poll() is None:
        for pid in list(peaks):
            peaks[pid] = max(peaks[pid], peak_of(pid))
            for child in children_of(pid):
                peaks.setdefault(child, 0)
        time.sleep(PAUSE_SECONDS)
    return process.returncode, peaks


if __name__ == "__main__":
    status, found = run(sys.argv[1:])
    for peak in found.values():
        print(f"{peak / (1 << 20):9.1f} MB", file=sys.stderr)
    sys.exit(status)
