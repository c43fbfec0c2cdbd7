#!/usr/bin/env python3
"""Write the tests of com.microsoft operators that tests/onnx/contrib holds.

usage: make_contrib.py [OUTPUT_DIR [GROUP...]]   (default tests/onnx/contrib; needs onnxruntime)

One folder per test in the form of build/conformance: model.onnx, test_data_set_0/input_K.pb and
output_K.pb, meta.json. Expected values are what onnxruntime computes, or numpy where it can't; they are kept
in the tree so that the tests need no package. Run again only to add cases: name the groups (functions of the
modules contrib_*.py) that have new ones.
"""
import sys

import contrib_bert
import contrib_case
import contrib_generation
import contrib_legacy
import contrib_llm
import contrib_nchwc
import contrib_numpy
import contrib_quant
import contrib_trials
import contrib_types

MODULES = [contrib_bert, contrib_quant, contrib_llm, contrib_legacy,
           contrib_nchwc, contrib_generation, contrib_types, contrib_numpy, contrib_trials]


def main():
    wanted = set(sys.argv[2:])
    groups = [g for m in MODULES for g in m.GROUPS]
    unknown = wanted - {g.__name__ for g in groups}
    if unknown:
        sys.exit(f"no group {', '.join(sorted(unknown))}; there are "
                 f"{', '.join(g.__name__ for g in groups)}")
    for group in groups:
        if not wanted or group.__name__ in wanted:
            contrib_case.seed(group.__name__)
            group()


main()
