#!/usr/bin/env python3
"""The process in which a peer without a C library runs one model: the commands of ../worker.c.

usage: worker.py PEER FOLDER THREADS START_MS

FOLDER holds model.onnx and inputs.npz or test_data_set_0. A peer reads no ONNX: peers/PEER.py makes
its own form of the model, of the ONNX file's weights. The first answer is "ok MS", "absent REASON"
where the peer has no form of such a model, or "error REASON".

A peer is a module with

    open(folder, threads) -> session, or raises Absent
    session.bind(inputs)     arrays by the names of the ONNX file's inputs
    session.run()            what is timed
    session.release()        undoes what a run left, untimed; may be missing
    session.outputs() -> {number of the ONNX file's output: array}

and its names are in the order of the ONNX file's outputs; it may lack some of them.
"""
import importlib
import pathlib
import resource
import statistics
import sys
import time

MIN_RUNS, MAX_RUNS, WARM_UP, ROUND_MS = 7, 4000, 2, 100.0


def now_ms():
    return time.monotonic() * 1000.0


def release(session):
    if hasattr(session, "release"):
        session.release()


def timed_run(session):
    begin = now_ms()
    session.run()
    took = now_ms() - begin
    release(session)
    return took


def measured_round(session):
    for _ in range(WARM_UP):
        timed_run(session)
    samples, begin = [], now_ms()
    while len(samples) < MIN_RUNS or (len(samples) < MAX_RUNS and now_ms() - begin < ROUND_MS):
        samples.append(timed_run(session))
    return statistics.median(samples)


def mean_beside(session, for_ms):
    begin, count = now_ms(), 0
    while count == 0 or now_ms() - begin < for_ms:
        timed_run(session)
        count += 1
    return (now_ms() - begin) / count


def save(session, path):
    import numpy as np
    session.run()
    np.savez(path, **{"output_%d" % k: array for k, array in session.outputs().items()})
    release(session)
    return 0.0


def obey(session, line):
    word, _, rest = line.strip().partition(" ")
    if word == "first":
        return timed_run(session)
    if word == "round":
        return measured_round(session)
    if word == "beside":
        return mean_beside(session, float(rest))
    if word == "peak":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    if word == "save":
        return save(session, rest)
    raise ValueError("unknown command '%s'" % word)


def answer(text):
    sys.stdout.write(text.replace("\n", " ") + "\n")
    sys.stdout.flush()


def main():
    peer, folder, threads, start = sys.argv[1:5]
    sys.path[0] = str(pathlib.Path(__file__).resolve().parent.parent)
    from peers import forms
    try:
        module = importlib.import_module("peers." + peer)
        session = module.open(pathlib.Path(folder), int(threads))
        session.bind(forms.read_inputs(pathlib.Path(folder)))
    except forms.Absent as reason:
        return answer("absent %s" % reason)
    except Exception as reason:     # whatever a peer raises is its answer
        return answer("error %s: %s" % (type(reason).__name__, reason))
    answer("ok %.6f" % (now_ms() - float(start)))
    for line in sys.stdin:
        try:
            answer("ok %.6f" % obey(session, line))
        except Exception as reason:
            return answer("error %s: %s" % (type(reason).__name__, reason))


if __name__ == "__main__":
    main()
