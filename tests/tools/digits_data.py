"""scikit-learn's handwritten digits (8x8 images), split once for all scripts.

Pixels are rounded to the 8 bits of a PNG (0..255), so that a model sees the same numbers from an
array and from an image file. Every fifth image is held out.
"""
import numpy as np
from sklearn.datasets import load_digits


def load():
    """Returns (train images, train labels, held-out images, held-out labels); uint8 N x 8 x 8."""
    digits = load_digits()
    images = np.rint(digits.images * (255 / 16)).astype(np.uint8)
    labels = digits.target.astype(np.int64)
    held = np.arange(len(images)) % 5 == 4
    return images[~held], labels[~held], images[held], labels[held]


def update_held_out(path, **arrays):
    """Add arrays to the .npz of held-out data, keeping those of other scripts."""
    if path.exists():
        with np.load(path) as old:
            arrays = {**{name: old[name] for name in old.files}, **arrays}
    np.savez_compressed(path, **dict(sorted(arrays.items())))
