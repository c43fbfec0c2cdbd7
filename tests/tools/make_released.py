#!/usr/bin/env python3
"""Write the backend tests that old releases of ONNX carried into folders, each test once.

usage: make_released.py [OUTPUT_DIR]        (default build/released)

Downloads the wheels of tests/requirements-released.txt into OUTPUT_DIR/wheels, by pip and their pinned
hashes, and unpacks of each onnx/backend/test/data alone (node, simple, pytorch-operator,
pytorch-converted; those of `real` are addresses, not data). A test is its model and its values: tests of
equal bytes are one, called NAME@RELEASE after the release that had it first. OUTPUT_DIR/cases has the
form of build/conformance; OUTPUT_DIR/wheels may be kept when that is made again.

Exit status: 0 done, 3 wheels can't be had here (no network: those it lacks are named on stderr).
"""
import hashlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import onnx

ROOT = pathlib.Path(__file__).resolve().parents[2]
REQUIREMENTS = ROOT / "tests" / "requirements-released.txt"
KINDS = ("node", "simple", "pytorch-operator", "pytorch-converted")
PLATFORMS = ("manylinux1", "manylinux2010", "manylinux_2_12", "manylinux_2_17", "manylinux2014")
DATA = "onnx/backend/test/data/"


def releases():
    """(version, sha256, ABI tag) of each line, oldest first."""
    line = re.compile(r"onnx==(\S+) --hash=sha256:([0-9a-f]{64})  # (cp\d+m?)$", re.M)
    return line.findall(REQUIREMENTS.read_text())


def find_wheel(wheels, version, digest):
    for path in wheels.glob(f"onnx-{version}-*.whl"):
        if hashlib.sha256(path.read_bytes()).hexdigest() == digest:
            return path
    return None


def download(wheels, version, digest, abi):
    """The wheel's path, or None where it can't be had."""
    wanted = wheels / "wanted.txt"
    wanted.write_text(f"onnx=={version} --hash=sha256:{digest}\n")
    platforms = [part for name in PLATFORMS for part in ("--platform", f"{name}_x86_64")]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
               "--no-input", "--no-deps", "--only-binary=:all:", "--require-hashes", "--retries", "1",
               "--timeout", "20", "--implementation", "cp", "--abi", abi, "--python-version",
               abi.strip("cpm"), *platforms, "--dest", str(wheels), "-r", str(wanted)]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    wanted.unlink()
    if said.returncode:
        if "DO NOT MATCH" in said.stderr.upper():
            raise SystemExit(f"make_released: onnx {version} does not have its pinned hash")
        print("make_released: " + (said.stderr.strip().splitlines() or ["pip failed"])[-1],
              file=sys.stderr)
    return find_wheel(wheels, version, digest)


def tests_of(wheel):
    """(kind, name, {path inside of the test: bytes}) of every test with a model."""
    found = {}
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.namelist():
            parts = entry.removeprefix(DATA).split("/", 2)
            if entry.startswith(DATA) and len(parts) == 3 and parts[0] in KINDS:
                if parts[2] and not parts[2].endswith("/"):
                    found.setdefault((parts[0], parts[1]), {})[parts[2]] = archive.read(entry)
    return [(kind, name, files) for (kind, name), files in sorted(found.items())
            if "model.onnx" in files]


def content_of(files):
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(f"{path} {len(files[path])}\n".encode())
        digest.update(files[path])
    return digest.digest()


def retype(path, content, model):
    """Releases up to 1.18 wrote the bits of bfloat16 values as uint16: those get their type back."""
    place = re.match(r".*/(input|output)_(\d+)\.pb$", path)
    infos = getattr(model.graph, place[1])[int(place[2]):] if place else []
    if not infos or infos[0].type.tensor_type.elem_type != onnx.TensorProto.BFLOAT16:
        return content
    tensor = onnx.TensorProto.FromString(content)
    if tensor.data_type == onnx.TensorProto.UINT16:
        tensor.data_type = onnx.TensorProto.BFLOAT16
    return tensor.SerializeToString()


def random_state(name):
    """That of the test of this name in build/conformance: its values were drawn the same way."""
    meta = ROOT / "build" / "conformance" / name / "meta.json"
    state = json.loads(meta.read_text()).get("random") if meta.exists() else None
    return {"random": state} if state else {}


def write_case(folder, kind, files):
    """data.json holds a test's tolerances where they aren't those of ONNX's runner."""
    model = onnx.load_from_string(files["model.onnx"])
    for path, content in files.items():
        at = folder / path
        at.parent.mkdir(parents=True, exist_ok=True)
        at.write_bytes(retype(path, content, model))
    given = json.loads(files.get("data.json", b"{}"))
    meta = {"name": folder.name, "rtol": given.get("rtol", 1e-3), "atol": given.get("atol", 1e-7),
            "folder": kind, "op": kind, "domain": "ai.onnx", **random_state(folder.name.split("@")[0])}
    (folder / "meta.json").write_text(json.dumps(meta, indent=1) + "\n")


def write_release(cases, wheel, version, seen):
    """Returns how many tests the release has, and how many of them no release before had."""
    tests = tests_of(wheel)
    fresh = 0
    for kind, name, files in tests:
        content = content_of(files)
        if content not in seen:
            seen.add(content)
            write_case(cases / f"{name}@{version}", kind, files)
            fresh += 1
    return len(tests), fresh


def main():
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "released"
    wheels, cases, stamp = out / "wheels", out / "cases", out / ".stamp"
    sources = REQUIREMENTS.read_bytes() + pathlib.Path(__file__).read_bytes()
    digest = hashlib.sha256(sources).hexdigest() + "\n"
    if stamp.exists() and stamp.read_text() == digest:
        return 0
    wheels.mkdir(parents=True, exist_ok=True)
    paths = {v: find_wheel(wheels, v, d) or download(wheels, v, d, a) for v, d, a in releases()}
    lacking = [version for version, path in paths.items() if path is None]
    if lacking:
        print("make_released: no wheel of onnx " + ", ".join(lacking), file=sys.stderr)
        return 3
    if cases.exists():
        shutil.rmtree(cases)
    seen = set()
    for version, path in paths.items():
        count, fresh = write_release(cases, path, version, seen)
        print(f"make_released: onnx {version}: {count} tests, {fresh} of them new", file=sys.stderr)
    print(f"make_released: {len(seen)} tests of {len(paths)} releases", file=sys.stderr)
    stamp.write_text(digest)
    return 0


if __name__ == "__main__":
    sys.exit(main())
