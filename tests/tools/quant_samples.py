"""Samples for the quantizers that bench_quant.py compares: drawn by seed, like the inputs that are
recorded with a model (test_data_set_0, or inputs.npz of a filled topology).

Images are crops of the photographs inside of scikit-learn and scikit-image, or of drawn pages for
models that read text, in the range of the recorded picture. Integers are drawn from the range of the recorded ones, unless these count or are
all alike (positions, masks). Other floats are the recorded ones, turned along their longest axis,
louder or softer, and with noise.
"""
import importlib.util
import pathlib

import numpy as np

SKIMAGE = ("astronaut.png", "chelsea.png", "coffee.png", "rocket.jpg", "motorcycle_left.png",
           "retina.jpg", "hubble_deep_field.jpg", "camera.png", "brick.png", "grass.png",
           "gravel.png", "coins.png", "page.png", "moon.png", "ihc.png")


def photographs():
    """RGB arrays of uint8."""
    from PIL import Image
    from sklearn.datasets import load_sample_images
    found = [np.asarray(image) for image in load_sample_images().images]
    spec = importlib.util.find_spec("skimage")
    for name in SKIMAGE if spec else ():
        path = pathlib.Path(spec.origin).parent / "data" / name
        if path.exists():
            found.append(np.asarray(Image.open(path).convert("RGB")))
    return found


def pages(count=12):
    """Drawn lines of text, dark on light and the other way round."""
    from PIL import Image, ImageDraw, ImageFont
    found = []
    for k in range(count):
        rng = np.random.default_rng([7, k])
        light, dark = int(rng.integers(180, 256)), int(rng.integers(0, 80))
        paper, ink = (light, dark) if k % 3 else (dark, light)
        image = Image.new("RGB", (640, 480), (paper,) * 3)
        draw, y = ImageDraw.Draw(image), 8
        while y < 440:
            size = int(rng.integers(16, 48))
            words = ["".join(chr(c) for c in rng.integers(97, 123, rng.integers(2, 10)))
                     for _ in range(12)]
            words[0] = words[0].upper() + str(rng.integers(1000))
            draw.text((int(rng.integers(4, 40)), y), " ".join(words), (ink,) * 3,
                      ImageFont.load_default(size))
            y += int(size * rng.uniform(1.1, 1.8))
        found.append(np.asarray(image))
    return found


def is_picture(value):
    return value.dtype == np.float32 and value.ndim == 4 and min(value.shape[2:] if
           value.shape[1] in (1, 3) else value.shape[1:3]) >= 28 and \
        (value.shape[1] in (1, 3) or value.shape[3] in (1, 3))


def crop(photos, rng, height, width):
    """A part of one of them with the sides of what is asked for, scaled to it."""
    from PIL import Image
    photo = photos[rng.integers(len(photos))]
    full = min(photo.shape[0] / height, photo.shape[1] / width)
    scale = full * rng.uniform(0.4, 1)
    h, w = max(1, int(height * scale)), max(1, int(width * scale))
    y, x = rng.integers(photo.shape[0] - h + 1), rng.integers(photo.shape[1] - w + 1)
    part = Image.fromarray(photo[y:y + h, x:x + w]).resize((width, height), Image.BILINEAR)
    part = np.asarray(part, np.float32) / 255
    part = part[:, ::-1] if rng.integers(2) else part
    return np.clip(0.5 + (part - 0.5) * rng.uniform(0.7, 1.1) + rng.uniform(-0.1, 0.1), 0, 1)


def picture(photos, rng, recorded):
    first = recorded.shape[1] in (1, 3)
    height, width = recorded.shape[2:] if first else recorded.shape[1:3]
    channels = recorded.shape[1] if first else recorded.shape[3]
    axes = (0, 2, 3) if first else (0, 1, 2)
    low, high = recorded.min(axis=axes), recorded.max(axis=axes)
    made = []
    for _ in range(recorded.shape[0]):
        part = crop(photos, rng, height, width)
        part = part if channels == 3 else part.mean(axis=2, keepdims=True)
        part = low + (high - low) * part
        made.append(part.transpose(2, 0, 1) if first else part)
    return np.ascontiguousarray(np.stack(made), np.float32)


def integers(rng, recorded):
    flat = recorded.reshape(-1)
    counts = flat.size > 1 and (np.diff(flat) == 1).all()
    if flat.size < 2 or counts or (flat == flat[0]).all() and flat[0] in (0, 1) or \
       len(np.unique(flat)) <= 2:
        return recorded
    return rng.integers(flat.min(), flat.max() + 1, recorded.shape).astype(recorded.dtype)


def floats(rng, recorded):
    if recorded.size < 8:
        return recorded
    axis = int(np.argmax(recorded.shape))
    turned = np.roll(recorded, rng.integers(recorded.shape[axis]), axis)
    noise = rng.standard_normal(recorded.shape) * 0.05 * recorded.std()
    return (turned * rng.uniform(0.6, 1.1) + noise).astype(recorded.dtype)


def draw(recorded, seed, count, text=False):
    """`count` feeds like the recorded one. The same whatever `count` is. text: pictures of it."""
    pictures = any(is_picture(v) for v in recorded.values())
    photos = [] if not pictures else pages() if text else photographs()
    made = []
    for k in range(count):
        rng = np.random.default_rng([seed, k])
        feed = {}
        for name, value in recorded.items():
            if is_picture(value):
                feed[name] = picture(photos, rng, value)
            elif value.dtype.kind in "iu":
                feed[name] = integers(rng, value)
            elif value.dtype.kind == "f":
                feed[name] = floats(rng, value)
            else:
                feed[name] = value
        made.append(feed)
    return made
