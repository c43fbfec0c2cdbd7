"""Is a device nearer to the exact values of a model than the values that were recorded of it?

usage: exact_values.py BIN FOLDER [--rtol X] [--atol X] --provider LIST

The exact values are those of the model with all floats as doubles, on the processor at level 0. Recorded values are floats of
one order of sums; where a model amplifies what these lose (a logarithm of a sum near zero), the exact values themselves
lie out of the bounds around them, which say nothing about a device then. In that case alone its results are judged by the
exact ones: the greatest and the root mean square of its errors mustn't exceed those of the recorded values. Exit status 0
where that holds, in every set of the folder that the device doesn't meet, for all outputs that don't lie within the bounds of
the recorded ones.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, numpy_helper

FLOAT, DOUBLE = TensorProto.FLOAT, TensorProto.DOUBLE


def widen(tensor):
    if tensor.data_type == FLOAT:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))


def as_doubles(model):
    """The model with doubles in the place of floats; of graphs without bodies."""
    graph = model.graph
    for tensor in graph.initializer:
        widen(tensor)
    for value in [*graph.input, *graph.output, *graph.value_info]:
        if value.type.tensor_type.elem_type == FLOAT:
            value.type.tensor_type.elem_type = DOUBLE
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS):
                sys.exit(f"{node.op_type}: bodies aren't computed in doubles")
            if attribute.type == AttributeProto.TENSOR:
                widen(attribute.t)
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i == FLOAT:
                attribute.i = DOUBLE
    return model


def read(folder, kind, count):
    return [numpy_helper.to_array(onnx.load_tensor(folder / f"{kind}_{i}.pb")) for i in range(count)]


def run(program, model, inputs, scratch, *options):
    np.savez(scratch / "inputs.npz", **inputs)
    done = subprocess.run([program, model, scratch / "inputs.npz", *options, "-o", scratch / "outputs.npz"], capture_output=True,
                          text=True)
    if done.returncode:
        sys.exit(f"{model}: {done.stderr.strip()}")
    with np.load(scratch / "outputs.npz") as outputs:
        return dict(outputs)


def errors(values, exact):
    apart = np.abs(values.astype(np.float64) - exact)
    return float(apart.max(initial=0)), float(np.sqrt(np.mean(apart**2))) if apart.size else 0.0


def judge(args, data):
    """Is the device wrong in this set?"""
    program, path = args.bin / "ort-run", args.folder / "model.onnx"
    model = onnx.load(path)
    initial = {t.name for t in model.graph.initializer}
    names = [i.name for i in model.graph.input if i.name not in initial]
    inputs = dict(zip(names, read(data, "input", len(names))))
    outputs = [o.name for o in model.graph.output]
    recorded = dict(zip(outputs, read(data, "output", len(outputs))))
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        onnx.save(as_doubles(model), scratch / "doubles.onnx")
        wide = {k: v.astype(np.float64) if v.dtype == np.float32 else v for k, v in inputs.items()}
        exact = run(program, scratch / "doubles.onnx", wide, scratch, "--level", "0")
        device = run(program, path, inputs, scratch, "--provider", args.provider)
    for name in outputs:
        if not exact[name].shape == device[name].shape == recorded[name].shape:
            print(f"not ok {data.name}, {name}: shape {device[name].shape}, recorded {recorded[name].shape}")
            return True

    def is_near(values, name):
        return np.abs(values - recorded[name]) <= args.atol + args.rtol * np.abs(recorded[name])

    if all(np.all(is_near(device[name], name)) for name in outputs):
        return False
    out = sum(int(np.sum(~is_near(exact[name], name))) for name in outputs)
    print(f"{data.name}: {out} of {sum(v.size for v in exact.values())} exact values are out of the bounds around the recorded "
          "ones")
    bad = not out
    for name in outputs:
        if np.all(is_near(device[name], name)):
            continue
        own, theirs = errors(device[name], exact[name]), errors(recorded[name], exact[name])
        holds = own[0] <= theirs[0] and own[1] <= theirs[1]
        bad |= not holds
        print(f"{'' if holds else 'not ok '}{name}: greatest error {own[0]:.3g}, root mean square {own[1]:.3g}; "
              f"of the recorded values {theirs[0]:.3g}, {theirs[1]:.3g}")
    return bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rtol", type=float, default=1e-3)
    parser.add_argument("--atol", type=float, default=1e-5)
    parser.add_argument("--provider", required=True)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    args = parser.parse_args()
    sets = sorted(args.folder.glob("test_data_set_*"))
    return not sets or any([judge(args, data) for data in sets])


if __name__ == "__main__":
    sys.exit(main())
