#!/usr/bin/env python3
"""dask_scores.py MODEL INPUTS OUT - scores a folder of .npy files on the workers of Dask.

Each file is the first input of one run; OUT is an .npy file of the first output of all of them, stacked in the order of
their names. Without --scheduler the workers are processes of this machine. Each worker loads the model once and keeps its session.
Dask gives the runs of a worker that dies to another one; the result is written when all are there.
"""
import argparse
import os
import pathlib

import distributed
import numpy as np

BATCH = 16  # files of one task: what a worker that dies has to repeat


def session(model):
    """The worker's own session, made by the first task that needs it."""
    import ort_tools

    kept = distributed.get_worker().__dict__.setdefault("sessions", {})
    if model not in kept:
        options = ort_tools.SessionOptions()
        options.intra_op_num_threads = 1
        kept[model] = ort_tools.InferenceSession(model, options)
    return kept[model]


def score(model, files):
    run = session(model)
    name = run.get_inputs()[0].name
    return [run.run(None, {name: np.load(file)})[0] for file in files]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("inputs", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--scheduler", help="its address, such as tcp://host:8786")
    parser.add_argument("--workers", type=int, help="without a scheduler: how many processes")
    o = parser.parse_args()
    files = [str(f.absolute()) for f in sorted(o.inputs.iterdir()) if f.suffix == ".npy"]
    if not files:
        parser.error(f"{o.inputs}: holds no .npy file")
    if o.scheduler:
        client = distributed.Client(o.scheduler)
    else:
        client = distributed.Client(n_workers=o.workers or os.cpu_count(), threads_per_worker=1, dashboard_address=None)
    model = str(pathlib.Path(o.model).resolve())
    batches = [files[i:i + BATCH] for i in range(0, len(files), BATCH)]
    tasks = [client.submit(score, model, batch, pure=False) for batch in batches]
    scores = np.stack([row for batch in client.gather(tasks) for row in batch])
    partial = o.out.with_name(o.out.name + ".partial")
    with open(partial, "wb") as f:
        np.save(f, scores)
    partial.replace(o.out)
    client.close()


if __name__ == "__main__":
    main()
