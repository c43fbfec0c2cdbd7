"""Every model with tensor inputs through ortpy, against its recorded outputs: prints what fails, and how many fit."""
import json
import pathlib
import sys

import numpy as np
import onnx
import ortpy
from onnx import numpy_helper


def load(path):
    return np.array(numpy_helper.to_array(onnx.load_tensor(str(path)))) if path.exists() else None


def names(model, side):
    defaults = {t.name for t in model.graph.initializer}
    return [v.name for v in getattr(model.graph, side) if v.name not in defaults]


def fits(value, expected, meta):
    if expected.dtype.kind in "OUS":
        return [str(x) for x in value.get_strings()] == [x.decode() if isinstance(x, bytes) else str(x) for x in expected.flat]
    return np.allclose(value.numpy(), expected, meta["rtol"], meta["atol"], equal_nan=True)


def main():
    fitting = 0
    for folder in sorted(pathlib.Path(sys.argv[2]).iterdir()):
        data = folder / "test_data_set_0"
        if not data.is_dir() or not (folder / "meta.json").exists():
            continue
        meta = json.loads((folder / "meta.json").read_text())
        model = onnx.load(str(folder / "model.onnx"), load_external_data=False)
        ins, outs = names(model, "input"), names(model, "output")
        feeds = {n: load(data / f"input_{i}.pb") for i, n in enumerate(ins)}
        expected = {n: load(data / f"output_{i}.pb") for i, n in enumerate(outs)}
        session = ortpy.Session(str(folder / "model.onnx"), ortpy.SessionOptions())
        if set(session.get_input_info()) != set(ins) or set(session.get_output_info()) != set(outs):
            print(folder.name, "has other names")
        everything = list(feeds.values()) + list(expected.values())
        if any(v is None for v in everything) or any(v.dtype.kind in "OUS" for v in feeds.values()):
            continue
        exact = pathlib.Path(sys.argv[1]) / "tests/models/exact" / folder.name # recorded where bytes saturate
        result = session.run(feeds)
        wrong = [] if exact.exists() else [n for n in outs if not fits(result[n], expected[n], meta)]
        fitting += not wrong
        if wrong:
            print(folder.name, wrong)
    print(fitting, "models fit")


main()
