"""What peers' forms of a model are made of: its inputs, its constants, its layers in order."""
import contextlib
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper


class Absent(Exception):
    """The peer has no form of such a model."""


def read_inputs(folder):
    """Arrays by the names of the model's inputs."""
    archive = folder / "inputs.npz"
    if archive.exists():
        with np.load(archive) as arrays:
            return {name: arrays[name] for name in arrays.files}
    graph = load(folder, weights=False).graph
    constants = {t.name for t in graph.initializer}
    names = [i.name for i in graph.input if i.name not in constants]
    return {name: read_tensor(folder / "test_data_set_0" / ("input_%d.pb" % k))
            for k, name in enumerate(names)}


def read_tensor(path):
    tensor = onnx.TensorProto()
    tensor.ParseFromString(path.read_bytes())
    return numpy_helper.to_array(tensor)


def load(folder, weights=True):
    return onnx.load(str(folder / "model.onnx"), load_external_data=weights)


@contextlib.contextmanager
def written(folder, writer, kind):
    """The model as a file or folder of its kind, made by a program beside this one. BENCH_CACHE
    names a folder where forms stay, by the digest of what they are made of. A process of its own
    writes, so that it counts for no peak of memory."""
    here = pathlib.Path(__file__).parent
    with tempfile.TemporaryDirectory() as own:
        cache = pathlib.Path(os.environ.get("BENCH_CACHE") or own, folder.name)
        sources = [*folder.rglob("*"), here / "forms.py", *here.glob(kind + "*")]
        path = cache / ("%s.%s" % (digest(sources), kind))
        if not path.exists():
            cache.mkdir(parents=True, exist_ok=True)
            for old in cache.glob("*." + kind):
                remove(old)
            write_form(here / writer, folder, path)
        yield path


def digest(paths):
    """Of the names and bytes of those that are files."""
    whole = hashlib.blake2b(digest_size=16)
    for path in sorted(p for p in paths if p.is_file()):
        whole.update(b"%s %d\n" % (path.name.encode(), path.stat().st_size))
        with open(path, "rb") as file:
            for block in iter(lambda: file.read(1 << 20), b""):
                whole.update(block)
    return whole.hexdigest()


def remove(path):
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def write_form(writer, folder, path):
    """Whole or not at all."""
    part = path.with_suffix(".part%d" % os.getpid())
    done = subprocess.run([sys.executable, writer, folder, part], capture_output=True, text=True)
    if done.returncode:
        remove(part)
        said = (done.stdout or done.stderr).strip().splitlines() or ["%s failed" % writer.name]
        raise Absent(said[-1])
    part.rename(path)


class Net:
    """A graph with its constants as arrays; Identity of a constant is that constant."""

    def __init__(self, folder):
        self.graph = load(folder).graph
        self.constants = {t.name: numpy_helper.to_array(t) for t in self.graph.initializer}
        self.nodes, self.users = [], {}
        for node in self.graph.node:
            if node.op_type == "Constant":
                self.constants[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
            elif node.op_type == "Identity" and node.input[0] in self.constants:
                self.constants[node.output[0]] = self.constants[node.input[0]]
            else:
                self.nodes.append(node)
                for name in node.input:
                    self.users.setdefault(name, []).append(node)

    def constant(self, node, rank):
        """The node's input that is a constant of that rank, or None."""
        for name in node.input:
            if name in self.constants and self.constants[name].ndim == rank:
                return self.constants[name]
        return None

    def linear_layers(self):
        """(weight [in, out], bias [out]) of all products by a constant matrix, in order."""
        layers = []
        for node in self.nodes:
            weight = self.constant(node, 2)
            if node.op_type == "Gemm":
                turned = any(a.name == "transB" and a.i for a in node.attribute)
                layers.append((weight.T if turned else weight, self.constant(node, 1)))
            elif node.op_type == "MatMul" and weight is not None:
                users = self.users.get(node.output[0], [])
                bias = self.constant(users[0], 1) if users and users[0].op_type == "Add" else None
                layers.append((weight, np.zeros(weight.shape[1], np.float32)
                               if bias is None else bias))
        return layers

    def norms(self):
        """(scale, bias, epsilon) of all layer normalizations, in order."""
        return [(self.constants[n.input[1]], self.constants[n.input[2]],
                 next((a.f for a in n.attribute if a.name == "epsilon"), 1e-5))
                for n in self.nodes if n.op_type == "LayerNormalization"]

    def tables(self):
        """The matrices that rows are gathered from, in order."""
        found = [self.constants[n.input[0]] for n in self.nodes
                 if n.op_type == "Gather" and n.input[0] in self.constants]
        return [table for table in found if table.ndim == 2]

    def added_matrix(self):
        """The first matrix that something is added to."""
        return next(self.constant(n, 2) for n in self.nodes
                    if n.op_type == "Add" and self.constant(n, 2) is not None)

    def convolutions(self):
        """(weight, bias) in order."""
        weights = [(n, self.constants[n.input[1]]) for n in self.nodes if n.op_type == "Conv"]
        return [(weight, self.constants[n.input[2]] if len(n.input) > 2
                 else np.zeros(len(weight), np.float32)) for n, weight in weights]

    def output_names(self):
        return [o.name for o in self.graph.output]
