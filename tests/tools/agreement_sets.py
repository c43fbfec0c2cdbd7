"""Inputs for bench_agreement.py, drawn by seed: crops of photographs, text lines, files of many types,
digits. Each set says what calibrates and what is judged: draws of the same kind, by other seeds.
"""
import gzip
import io
import json
import pickle
import random
import string
import struct
import tarfile
import wave
import zipfile
import zlib

import numpy as np

import quant_samples

JUDGED, CALIBRATING = 1000, 256


# ---- photographs

def crops(photos, seed, count, height, width, change):
    """change: of a picture of 0 to 1, height x width x 3."""
    rng = np.random.default_rng([seed, height, width])
    return np.stack([change(quant_samples.crop(photos, rng, height, width))
                     for _ in range(count)]).astype(np.float32)


def pictures(name, side, change):
    photos = quant_samples.photographs()
    return {name: crops(photos, 1, CALIBRATING, side, side, change)}, \
        {name: crops(photos, 2, JUDGED, side, side, change)}


def lite0():
    return pictures("input", 224, lambda x: ((x * 255 - 127) / 128).transpose(2, 0, 1))


def squeezenet():
    return pictures("data", 227, lambda x: (x[:, :, ::-1] * 255).transpose(2, 0, 1))


def resnet8():
    return pictures("input_1", 32, lambda x: x * 255)


def wake_words():
    return pictures("input_1", 96, lambda x: x)


# ---- text lines

LETTERS = string.ascii_letters + string.digits + " .,-:%&()'!?/"


def text_line(rng, height, width):
    """Words in the font that comes with PIL, of some size, tilt, colour and noise."""
    from PIL import Image, ImageDraw, ImageFilter, ImageFont
    words = ["".join(rng.choice(list(LETTERS[:62]), rng.integers(2, 9))) for _ in range(4)]
    text = (" " if rng.integers(4) else rng.choice(list(LETTERS[62:]))).join(words)
    paper, ink = rng.integers(120, 256, 3), rng.integers(0, 100, 3)
    if rng.integers(4) == 0:
        paper, ink = ink, paper
    page = Image.new("RGB", (width * 2, height * 2), tuple(map(int, paper)))
    font = ImageFont.load_default(size=float(rng.uniform(height * 0.9, height * 1.5)))
    ImageDraw.Draw(page).text((rng.uniform(4, 20), rng.uniform(0, height * 0.4)), text,
                              fill=tuple(map(int, ink)), font=font)
    page = page.rotate(float(rng.uniform(-2, 2)), Image.BILINEAR,
                       fillcolor=tuple(map(int, paper))).resize((width, height), Image.BILINEAR)
    if rng.integers(3) == 0:
        page = page.filter(ImageFilter.GaussianBlur(float(rng.uniform(0.3, 1))))
    noise = rng.standard_normal((height, width, 3)) * rng.uniform(0, 12)
    return np.clip(np.asarray(page, np.float32) + noise, 0, 255)


def lines(seed, count, width, turn):
    rng = np.random.default_rng([seed, width])
    made = []
    for _ in range(count):
        line = text_line(rng, 48, width)
        line = line[::-1, ::-1] if turn and rng.integers(2) else line
        made.append((line.transpose(2, 0, 1) / 255 - 0.5) / 0.5)
    return {"x": np.stack(made).astype(np.float32)}


def recognition():
    return lines(1, CALIBRATING, 320, False), lines(2, JUDGED, 320, False)


def direction():
    return lines(1, CALIBRATING, 192, True), lines(2, JUDGED, 192, True)


# ---- files

WORDS = ("value count index table result total name item order price user group state level "
         "begin end first last open close read write send take give make find show").split()


def word(r):
    return r.choice(WORDS)


def prose(r, n):
    return " ".join(word(r) for _ in range(n)).capitalize() + "."


def records(r):
    return [{"id": k, word(r): r.random(), "note": prose(r, 5), "on": bool(k % 2)}
            for k in range(r.randint(3, 30))]


def python_file(r):
    body = "".join(f"def {word(r)}_{k}({word(r)}, {word(r)}=None):\n    \"\"\"{prose(r, 6)}\"\"\"\n"
                   f"    for i in range({r.randint(2, 99)}):\n        if i % {r.randint(2, 9)} == 0:\n"
                   f"            print({word(r)}, i)\n    return {r.randint(0, 9)}\n\n"
                   for k in range(r.randint(1, 12)))
    return f"#!/usr/bin/env python3\nimport os\nimport {r.choice(['sys', 're', 'json'])}\n\n{body}"


def c_file(r):
    return "#include <stdio.h>\n#include <stdlib.h>\n\n" + "".join(
        f"static int {word(r)}_{k}(const char *{word(r)}, int n)\n{{\n    for (int i = 0; i < n; i++)\n"
        f"        printf(\"%d\\n\", i * {r.randint(2, 99)});\n    return {r.randint(0, 9)};\n}}\n\n"
        for k in range(r.randint(1, 12))) + "int main(void)\n{\n    return 0;\n}\n"


def java_file(r):
    return "package org.example;\n\nimport java.util.List;\n\npublic class Thing {\n" + "".join(
        f"    private int {word(r)}{k};\n    public void {word(r)}{k}(String s) {{\n"
        f"        System.out.println(s + {r.randint(1, 99)});\n    }}\n"
        for k in range(r.randint(1, 12))) + "}\n"


def script_file(r):
    return "const fs = require('fs');\n" + "".join(
        f"function {word(r)}{k}(a, b) {{\n  const {word(r)} = a.map((x) => x * {r.randint(2, 9)});\n"
        f"  console.log(`${{b}}`);\n  return null;\n}}\n\n" for k in range(r.randint(1, 12)))


def shell_file(r):
    return "#!/bin/bash\nset -eu\n" + "".join(
        f"for {word(r)} in *.txt; do\n    grep -c {word(r)} \"$1\" | sort -n > out{k}.log\ndone\n"
        f"if [ -f {word(r)} ]; then\n    echo \"{prose(r, 4)}\" >&2\nfi\n"
        for k in range(r.randint(1, 12)))


def html_file(r):
    return "<!DOCTYPE html>\n<html>\n<head><title>" + prose(r, 3) + "</title></head>\n<body>\n" + \
        "".join(f"<h2>{prose(r, 3)}</h2>\n<p class=\"{word(r)}\">{prose(r, 20)}</p>\n"
                for _ in range(r.randint(2, 20))) + "</body>\n</html>\n"


def markdown_file(r):
    return f"# {prose(r, 3)}\n\n" + "".join(
        f"## {prose(r, 3)}\n\n{prose(r, 25)}\n\n- {word(r)}\n- [{word(r)}](https://example.org)\n\n"
        f"```sh\n{word(r)} --{word(r)}\n```\n\n" for _ in range(r.randint(1, 12)))


def css_file(r):
    return "".join(f".{word(r)}-{k} > a:hover {{\n  color: #{r.randrange(1 << 24):06x};\n"
                   f"  margin: {r.randint(0, 40)}px auto;\n}}\n\n" for k in range(r.randint(3, 40)))


def sql_file(r):
    return "".join(f"CREATE TABLE {word(r)}_{k} (id INTEGER PRIMARY KEY, {word(r)} TEXT);\n"
                   f"INSERT INTO {word(r)}_{k} VALUES ({r.randint(1, 99)}, '{prose(r, 3)}');\n"
                   for k in range(r.randint(2, 20)))


def ini_file(r):
    return "".join(f"[{word(r)}{k}]\n{word(r)} = {r.randint(1, 99)}\n{word(r)}_path = /srv/{word(r)}\n\n"
                   for k in range(r.randint(2, 20)))


def yaml_file(r):
    return "---\n" + "".join(f"{word(r)}_{k}:\n  - name: {word(r)}\n    count: {r.randint(1, 99)}\n"
                             f"    note: \"{prose(r, 4)}\"\n" for k in range(r.randint(2, 20)))


def xml_file(r):
    return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<list>\n" + "".join(
        f"  <item id=\"{k}\"><{word(r)}>{prose(r, 4)}</{word(r)}></item>\n"
        for k in range(r.randint(3, 30))) + "</list>\n"


def csv_file(r):
    return f"id,{word(r)},{word(r)},note\n" + "".join(
        f"{k},{r.random():.4f},{r.randint(1, 999)},{word(r)}\n" for k in range(r.randint(5, 60)))


def json_file(r):
    return json.dumps(records(r), indent=r.choice([None, 1, 2, 4]))


def text_file(r):
    return "\n\n".join(prose(r, r.randint(20, 80)) for _ in range(r.randint(1, 10)))


def picture_file(r):
    from PIL import Image
    pixels = np.random.default_rng(r.randrange(1 << 30)).integers(0, 256, (6, 8, 3), dtype=np.uint8)
    image = Image.fromarray(pixels).resize((r.randint(20, 120), r.randint(20, 120)))
    out = io.BytesIO()
    image.save(out, r.choice(["PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "ICO"]))
    return out.getvalue()


def sound_file(r):
    out = io.BytesIO()
    with wave.open(out, "wb") as sound:
        sound.setnchannels(r.choice([1, 2]))
        sound.setsampwidth(2)
        sound.setframerate(r.choice([8000, 16000, 44100]))
        sound.writeframes(b"".join(struct.pack("<h", int(9000 * np.sin(i * r.random() / 9)))
                                   for i in range(2000)))
    return out.getvalue()


def archive_file(r):
    out = io.BytesIO()
    texts = [text_file(r).encode() for _ in range(r.randint(1, 4))]
    kind = r.randrange(4)
    if kind == 0:
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
            for k, text in enumerate(texts):
                z.writestr(f"{word(r)}{k}.txt", text)
    elif kind == 1:
        with tarfile.open(fileobj=out, mode="w") as t:
            for k, text in enumerate(texts):
                info = tarfile.TarInfo(f"{word(r)}{k}.txt")
                info.size = len(text)
                t.addfile(info, io.BytesIO(text))
    elif kind == 2:
        return gzip.compress(b"".join(texts), mtime=0)
    else:
        return zlib.compress(b"".join(texts))
    return out.getvalue()


def array_file(r):
    out = io.BytesIO()
    np.save(out, np.random.default_rng(r.randrange(1 << 30)).random((r.randint(9, 40), 7)))
    return out.getvalue() if r.randrange(2) else pickle.dumps(records(r))


FILES = (python_file, c_file, java_file, script_file, shell_file, html_file, markdown_file, css_file,
         sql_file, ini_file, yaml_file, xml_file, csv_file, json_file, text_file, picture_file,
         sound_file, archive_file, array_file)


def ends(data):
    """The first and last 1,024 bytes, without blanks around them, 256 where there are none."""
    first, last = data[:4096].lstrip()[:1024], data[-4096:].rstrip()[-1024:]
    return list(first) + [256] * (1024 - len(first)) + [256] * (1024 - len(last)) + list(last)


def files(seed, count):
    made = []
    for k in range(count):
        r = random.Random(seed * 1000003 + k)
        data = FILES[k % len(FILES)](r)
        made.append(ends(data.encode() if isinstance(data, str) else data))
    return {"bytes": np.array(made, np.int32)}


def file_types():
    return files(1, CALIBRATING), files(2, JUDGED + 45)


# ---- digits with labels

def digits(name, flat):
    """Every fifth of scikit-learn's is judged: 359."""
    from sklearn.datasets import load_digits
    data = load_digits()
    judged = np.arange(len(data.target)) % 5 == 4
    pixels = data.data.astype(np.float32) if flat else \
        (data.images / 16).astype(np.float32)[:, None]
    return {name: pixels[~judged][:CALIBRATING]}, {name: pixels[judged]}, data.target[judged]
