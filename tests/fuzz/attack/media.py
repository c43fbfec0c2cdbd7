"""media.py - generators of attack.py for pictures, sound, stores of tensors and what is drawn from them.

Each starts from bytes that a library wrote as it should, and damages them: flipped and cut bytes, lengths
and sizes at the ends of their range, pieces twice. PNG's checksums are mended afterwards, or nothing
behind them would be reached.
"""
import io
import json
import struct
import zlib

import numpy
from onnx import numpy_helper
from PIL import Image

WORDS = [b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", bytes(4), b"\xff\xff\xff\x7f", b"\0\0\0\x80",
         b"\0\1\0\0", b"\1\0\0\0"]


def damage(rng, data, most=8):
    """Some bytes changed, more often near the start, where the headers are."""
    data = bytearray(data)
    for _ in range(rng.choice([0, 1, 1, 2, 3, 5, most])):
        if not data:
            break
        near = min(len(data), 120)
        at = rng.randrange(near if rng.random() < 0.5 else len(data))
        how = rng.choice(["flip", "flip", "flip", "byte", "word", "drop", "double", "insert", "cut"])
        if how == "flip":
            data[at] ^= 1 << rng.randrange(8)
        elif how == "byte":
            data[at] = rng.choice([0, 1, 127, 128, 255])
        elif how == "word":
            data[at:at + 4] = rng.choice(WORDS)
        elif how == "drop":
            del data[at:at + rng.randrange(1, 20)]
        elif how == "double" and len(data) < 1 << 20:
            data[at:at] = data[at:at + rng.randrange(1, 60)]
        elif how == "insert":
            data[at:at] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 9)))
        elif how == "cut" and rng.random() < 0.3:
            del data[at:]
    return bytes(data)


def mend_png(data):
    """The checksums of the chunks that are whole."""
    out, at = data[:8], 8
    while at + 12 <= len(data):
        size = struct.unpack(">I", data[at:at + 4])[0]
        if at + 12 + size > len(data):
            break
        body = data[at + 4:at + 8 + size]
        out += data[at:at + 4] + body + struct.pack(">I", zlib.crc32(body))
        at += 12 + size
    return out + data[at:]


# ---- pictures

PICTURES = (
    [("PNG", mode, {}) for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16")] +
    [("JPEG", mode, {"progressive": p, "subsampling": s}) for mode in ("L", "RGB", "CMYK")
     for p in (False, True) for s in (0, 2)] +
    [("WEBP", mode, {"lossless": l}) for mode in ("RGB", "RGBA") for l in (False, True)] +
    [("BMP", mode, {}) for mode in ("1", "L", "P", "RGB", "RGBA")] +
    [("TIFF", mode, {"compression": c}) for mode in ("L", "RGB", "RGBA")
     for c in (None, "packbits", "tiff_lzw", "tiff_deflate")] +
    [("PPM", "L", {}), ("PPM", "RGB", {}), ("GIF", "P", {}), ("JPEG2000", "RGB", {}),
     ("JPEG2000", "L", {"tile_size": (8, 8)})])


def picture(rng, size=None):
    """(bytes, extension) of a small picture of noise."""
    form, mode, options = rng.choice(PICTURES)
    width, height = size or (rng.choice([1, 7, 23, 200]), rng.choice([1, 8, 17, 130]))
    noise = Image.frombytes("RGB", (width, height), rng.randbytes(3 * width * height))
    out = io.BytesIO()
    made = Image.frombytes("I;16", (width, height), rng.randbytes(2 * width * height)) \
        if mode == "I;16" else noise.convert(mode)
    made.save(out, form, **{k: v for k, v in options.items() if v is not None})
    return out.getvalue(), form.lower()


def pictures(rng, work, corpus, tiers):
    data, extension = picture(rng)
    data = damage(rng, data)
    if data.startswith(b"\x89PNG") and rng.random() < 0.9:
        data = mend_png(data)
    name = work / f"p.{rng.choice([extension, extension, extension, 'png', 'jpg', 'bin'])}"
    name.write_bytes(data)
    steps = rng.choice([[], [], ["--resize", "5x7"], ["--letterbox", "16"], ["--crop", "3"], ["--gray"],
                        ["--layout", "nchw"], ["--mean", "0.5", "--std", "0.25"]])
    return ["ort-tensor", name, *steps, "-o", work / rng.choice(["y.npy", "y.png", "y.pb", "y.bmp"])]


# ---- sound

def sound(rng):
    """A WAV file whose header says anything."""
    kind, channels = rng.choice([1, 1, 3, 6, 7, 0xfffe, 85]), rng.choice([1, 2, 0, 7, 65535])
    rate = rng.choice([8000, 16000, 44100, 0, 1, (1 << 31) - 1, (1 << 32) - 1])
    bits = rng.choice([8, 16, 24, 32, 64, 0, 1, 12, 65535])
    data = rng.randbytes(rng.choice([0, 1, 7, 100, 4000]))
    tail = b"\x16\0" + rng.randbytes(22) if kind == 0xfffe else b""
    head = struct.pack("<HHIIHH", kind, channels, rate, rate * channels * bits // 8 & 0xffffffff,
                       channels * bits // 8 & 0xffff, bits) + tail
    claimed = rng.choice([len(data), len(data), len(data), 0, 7, 0xffffffff])
    extra = rng.choice([b"", b"", b"LIST" + struct.pack("<I", rng.choice([4, 0, 0xffffffff])) + b"abcd"])
    body = b"WAVEfmt " + struct.pack("<I", len(head)) + head + extra
    body += b"data" + struct.pack("<I", claimed) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


def sounds(rng, work, corpus, tiers):
    name = work / "s.wav"
    name.write_bytes(damage(rng, sound(rng), 3))
    steps = rng.choice([[], ["--mono"], ["--mono", "--rate", rng.choice(["8000", "1", "96000", "0"])],
                        ["--mono", "--chunk", rng.choice(["1", "512"]), "--hop",
                         rng.choice(["1", "7", "0", "9223372036854775807"])]])
    return ["ort-tensor", name, *steps, "-o", work / rng.choice(["y.npy", "y.wav", "y.npz"])]


# ---- stores of tensors

def array(rng):
    shape = [rng.choice([0, 1, 2, 3, 5]) for _ in range(rng.choice([0, 1, 2, 3]))]
    return numpy.ones(shape, rng.choice(["f4", "f8", "f2", "i8", "u1", "?", "c8"]))


def safetensors(rng):
    sizes = [0, 1, 2, 4, 16, -1, (1 << 62), (1 << 63) - 1, 1 << 63, 1e18, 4.5, "a", None]
    entries = {}
    for i in range(rng.randrange(1, 5)):
        entries[rng.choice([f"t{i}", "t0", "", "__metadata__", "a\0b", "é"])] = {
            "dtype": rng.choice(["F32", "F32", "I64", "U8", "BF16", "F16", "BOOL", "F8_E4M3", "XX"]),
            "shape": rng.choice([[4], [2, 2], [], [rng.choice(sizes)], [rng.choice(sizes)] * 2, 4]),
            "data_offsets": rng.choice([[0, 16], [16, 32], [0, 4], [rng.choice(sizes) for _ in "ab"]])}
    header = json.dumps(entries).encode()
    length = rng.choice([len(header)] * 5 + [0, 1 << 40, (1 << 63) - 1])
    return struct.pack("<Q", length) + header + rng.randbytes(rng.choice([0, 16, 32]))


def store(rng):
    """(bytes, extension)."""
    kind = rng.choice(["safetensors", "npz", "npz", "npy", "pb", "pb", "sequence", "map", "csv", "json"])
    out = io.BytesIO()
    if kind == "safetensors":
        return safetensors(rng), kind
    if kind == "npz":
        save = rng.choice([numpy.savez, numpy.savez_compressed])
        save(out, **{f"t{i}": array(rng) for i in range(rng.randrange(4))})
        return out.getvalue(), kind
    if kind == "npy":
        numpy.save(out, array(rng))
        return out.getvalue(), kind
    if kind == "pb":
        made = numpy.array(["a", "bb", ""], object) if rng.random() < 0.2 else array(rng)
        return numpy_helper.from_array(made, "x").SerializeToString(), kind
    if kind == "sequence":
        return numpy_helper.from_list([numpy.arange(3.0), numpy.arange(4.0)], "s").SerializeToString(), "pb"
    if kind == "map":
        return numpy_helper.from_dict({1: numpy.float32(2), 2: numpy.float32(3)},
                                      "m").SerializeToString(), "pb"
    cells = [[rng.choice(["1", "-2.5", "1e9", "nan", "x", "", '"a,b"']) for _ in range(3)] for _ in "abcd"]
    if kind == "csv":
        return "\n".join(",".join(row) for row in [["a", "b", "c"], *cells]).encode(), kind
    return json.dumps(rng.choice([{"a": [[1, 2.5], [3, -4]], "b": ["x", "y"]}, [[1, 2], [3, 4]],
                                  [{"a": 1, "b": [1, 2]}, {"a": 2, "b": [3, 4]}],
                                  {"dtype": "int4", "shape": [3], "data": [1, 2, 3]}])).encode(), kind


def stores(rng, work, corpus, tiers):
    data, extension = store(rng)
    name = work / f"t.{extension}"
    name.write_bytes(damage(rng, data))
    if extension == "pb" and rng.random() < 0.3: # as a recorded set of a model
        path, folder = rng.choice(corpus)
        made = work / "test_data_set_0"
        made.mkdir()
        for file in folder.glob("*.pb"):
            (made / file.name).write_bytes(damage(rng, file.read_bytes(), 2))
        return ["ort-run", path, "-i", made, "--hash", "--timeout", "6", "--max-memory", "1G", "-q"]
    target = rng.choice(["y.npz", "y.safetensors", "y.pb", "y.json", "y.csv", "y.npy"])
    return ["ort-tensor", name, "-o", work / target] if rng.random() < 0.6 else [
        "ort-tensor", name, rng.choice(["--print", "--json"])]


# ---- what is drawn

def drawings(rng, work, corpus, tiers):
    numbers = lambda *shape: numpy.frombuffer(
        rng.randbytes(4 * int(numpy.prod(shape))), "<f4").reshape(shape) if rng.random() < 0.3 else \
        numpy.full(shape, rng.choice([0, 0.9, 1e30, -5, numpy.nan, numpy.inf]), "f4")
    side = rng.choice([0, 1, 3, 85, 84, 8400])
    numpy.savez(work / "t.npz", a=rng.choice([
        numbers(1, side, 85), numbers(1, 85, side), numbers(side, 6), numbers(1, 3, side), numbers(7),
        numbers(1, 2, 9, 11), numbers(9, 11)]), **({"b": numbers(1, side, 4)} if rng.random() < 0.3 else {}))
    form = rng.choice([["--detect", f] for f in ("yolox", "yolov5", "yolov8", "yunet", "ultraface", "ssd",
                                                 "corners")] + [["--mask"], ["--map"], ["--curve"]])
    more = rng.choice([[], ["--letterbox", "32"], ["--stretch", "7x9"], ["--score", "-1"], ["--iou", "0"],
                       ["--most", "9223372036854775807"], ["--line", "1e9"], ["--opacity", "2"]])
    seen = work / "seen.png"
    data, _ = picture(rng, (20, 30))
    seen.write_bytes(damage(rng, data, 1) if rng.random() < 0.3 else data)
    return ["ort-draw", *([seen] if rng.random() < 0.7 else []), "-i", work / "t.npz", *form, *more,
            *(["-o", work / "y.png"] if rng.random() < 0.7 else ["--json"])]
