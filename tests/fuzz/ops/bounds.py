"""bounds.py - how far apart two correct computations in one float type may lie, in units of its eps.

u = eps / 2 is the unit roundoff. A sum of k products in any order is off by at most
gamma_k * sum |a_i||b_i| with gamma_k = k u / (1 - k u) (Higham, Accuracy and Stability, 3.1); ours
and the peer's together by twice that: k * eps * sum |a_i||b_i|, which dot() gives. Everything else
here is built from that bound and from the stated accuracy of the elementwise functions.
"""
import numpy as np

# Elementwise functions: ours as lib/kernel/vmath.h states it, the peers' (numpy, libm and MLAS) as
# measured against double over the same values, in ULP of the result; the sum is what two may differ.
FUNCTION = 8


# The eps of a small type in units of float's, for what rounds to that type between its steps.
UNIT = {"float16": 2.0 ** 13, "bfloat16": 2.0 ** 16}


def unit(dtype):
    return UNIT.get(np.dtype(dtype).name, 1.0)


def depth(terms):
    """Additions that a term of a sum goes through: sums are formed in blocks of 128 here
    (lib/README.md) and in numpy, in panels or by lanes in onnxruntime."""
    terms = max(int(terms), 1)
    return min(terms, 128) + terms / 128


def sums(terms, total):
    """Two sums of `terms` products whose magnitudes add up to `total`."""
    return (depth(terms) + 1) * float(total)


def along(x, axes, power=1):
    """The largest sum of |x|^power along the axes (None: all)."""
    x = magnitude(x) ** power
    return float(np.max(x.sum(None if axes is None else tuple(axes)), initial=0.0))


def most(x):
    """The largest finite magnitude, at least the smallest that matters to a product."""
    if x is None:
        return 0.0
    x = np.abs(np.asarray(x).astype(np.float64))
    x = x[np.isfinite(x)]
    return float(x.max()) if x.size else 0.0


def double(x):
    return np.asarray(x).astype(np.float64)


def sampled(x, size, taps):
    """A mean of `taps` interpolations between elements of x: a place, of a grid of `size`, is off by
    4 eps of it, which a slope of at most 2 |x| between neighbours makes 8 size |x|; the weighted sums
    add their own, at weights of at most 2 in magnitude."""
    return (8 * size + 2 * depth(taps) + 8) * 2 * most(x)


def magnitude(x):
    """|x| in double; what is not finite counts 0 (its results are compared by place)."""
    with np.errstate(all="ignore"):
        x = np.abs(np.asarray(x).astype(np.float64))
    return np.where(np.isfinite(x), x, 0.0)


def dot(terms, *factors, extra=0.0):
    """Two sums of `terms` products whose factors are at most those given, `extra` beside it."""
    product = float(terms)
    for f in factors:
        product *= f if isinstance(f, float | int) else most(f)
    return (depth(terms) + 1) * (product + extra)


def attention(size, total, scale, q, k, v, q_off=0.0, k_off=0.0, v_off=0.0, bias=0.0):
    """Attention with at most |q|, |k|, |v| per element, each already off by *_off eps.

    A score scale * sum q k, of `size` products, is off by
        d = scale * (size (|k| q_off + |q| k_off) + (size + 1) size |q||k|) + |bias| + |score|
    (the last two: adding the bias or mask, and the scale). exp turns an absolute error of d into a
    relative one of d, sum and quotient double it; the sum of `total` terms adds total + 1, exp and
    the division 4 + 1. Probabilities add up to 1, so the product with v is off by
        (2 d + total + 6) |v| + v_off + (total + 1) |v|.
    """
    score = scale * size * q * k
    d = scale * size * (k * q_off + q * k_off) + (size + 2) * score + bias + score
    return (2 * d + 2 * total + 7) * v + v_off


def shaken(rng, f, values, terms):
    """The bound of a computation too long for a closed form, by its condition: each rounding is a
    relative change of some operand, so roundings move the result as random relative changes of all
    operands do. Of 8 such changes of size h, the largest effect over h is the effect of one eps;
    a sum of `terms` products adds up sqrt(terms) of them, 8 deviations leave nothing outside
    (Higham and Mary, A New Approach to Probabilistic Rounding Error Analysis, 2019), and there are
    two sides."""
    h, exact, worst = 1e-7, f(*values), 0.0
    for _ in range(8):
        moved = f(*[v if v is None or v.dtype.kind in "iu" else
                    double(v) * (1 + h * rng.choice([-1.0, 1.0], v.shape)) for v in values])
        for a, b in zip(exact, moved, strict=True):
            worst = max(worst, float(np.abs(a - b).max(initial=0.0)) / h)
    top = max(float(np.abs(a).max(initial=0.0)) for a in exact)
    return 2 * 8 * np.sqrt(terms) * (worst + top)


def norm(x, count, scale, epsilon, shift=0.0, mean=True):
    """(x - mean) / sqrt(var + epsilon) * scale + shift along rows of x (the last axis, `count` long).

    The variance may be formed as E x^2 - (E x)^2, as the function bodies of ONNX have it: off by
    count + 3 eps of E x^2, relatively by that over deviation^2. Otherwise:
    the mean is off by count |x| eps, so is each difference; the variance, of differences up to 2|x|,
    relatively by count + 2 and by 2 count |x| / deviation of the mean's error. The quotient
    inherits half of the variance's relative error times itself; its size is at most 2|x| / deviation.
    """
    signed = double(x).reshape(-1, count) if count else np.zeros((0, 1))
    signed = signed[np.isfinite(signed).all(1)]  # the others are compared by place
    rows = np.abs(signed)
    if not rows.size:
        return 0.0
    level = signed.mean(1) if mean else 0.0
    spread = np.sqrt(((signed.T - level) ** 2).mean(0) + epsilon)
    top = rows.max(1)
    quotient = np.abs((signed.T - level) / spread).max(0)
    off = (count + 2) * top / spread * (1.0 if mean else 0.0)
    relative = (count + 4) / 2 + (off if mean else 0.0)
    if mean:
        relative = relative + (depth(count) + 3) * (signed ** 2).mean(1) / spread ** 2 / 2
    return float((off + quotient * (relative + 4)).max()) * scale + 2 * shift
