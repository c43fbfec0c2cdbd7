#!/usr/bin/env python3
"""Make the bench's own models: topologies of kinds that real models have, weights by seed.

usage: make.py OUTPUT_DIR [NAME...]

Writes OUTPUT_DIR/NAME/model.onnx and inputs.npz, once.
"""
import pathlib
import sys

import convolutional
import sequence
import trees
from net import Net


def main():
    folder = pathlib.Path(sys.argv[1])
    for kind in convolutional.KINDS + sequence.KINDS:
        place = folder / kind.__name__
        if (sys.argv[2:] and kind.__name__ not in sys.argv[2:]) or (place / "inputs.npz").exists():
            continue
        net = Net(kind.__name__)
        net.save(place, kind(net))
        print(place / "model.onnx")
    trees.make(folder, sys.argv[2:])


if __name__ == "__main__":
    main()
