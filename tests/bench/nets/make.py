#!/usr/bin/env python3
"""Make the bench's own models: topologies of kinds that real models have, weights by seed.

usage: make.py OUTPUT_DIR [PATTERN...]

Writes OUTPUT_DIR/NAME/model.onnx and inputs.npz, once, of the names that a pattern takes.
"""
import fnmatch
import pathlib
import sys

import convolutional
import sequence
import trees
from net import Net


def wanted(name):
    return not sys.argv[2:] or any(fnmatch.fnmatch(name, p) for p in sys.argv[2:])


def main():
    folder = pathlib.Path(sys.argv[1])
    for kind in convolutional.KINDS + sequence.KINDS:
        place = folder / kind.__name__
        if not wanted(kind.__name__) or (place / "inputs.npz").exists():
            continue
        net = Net(kind.__name__)
        net.save(place, kind(net))
        print(place / "model.onnx")
    trees.make(folder, wanted)


if __name__ == "__main__":
    main()
