"""exact_case.py - a case of exact_operators.py: draws, inputs, expected outputs; sums of windows.
"""
import ml_dtypes
import numpy as np

MS = "com.microsoft"
F32 = np.float32
ONE_ROUNDING = 2.0 ** -24
KINDS = {"int8": np.int8, "uint8": np.uint8, "int16": np.int16, "uint16": np.uint16,
         "int4": ml_dtypes.int4, "uint4": ml_dtypes.uint4, "int2": ml_dtypes.int2,
         "uint2": ml_dtypes.uint2}
LIMITS = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767), "uint16": (0, 65535),
          "int4": (-8, 7), "uint4": (0, 15), "int2": (-2, 1), "uint2": (0, 3)}
OPERATORS = {}


class Case:
    """One node: inputs by position (None: left out), and what its outputs must be."""

    def __init__(self, rng):
        self.rng = rng
        self.exact = rng.random() < 0.5  # scales are powers of two
        self.attributes, self.inputs, self.outputs = {}, [], []
        self.domain, self.name, self.opset = "", "", 21
        self.nodes = None  # (names of inputs, names of outputs) -> nodes; None: the one of that name
        self.per_tier = False  # equal bits are asked of the thread counts of a tier alone

    # ---- draws

    def pick(self, values):
        return values[int(self.rng.integers(len(values)))]

    def size(self, most=40):
        return int(self.pick([1, 2, 3, self.rng.integers(1, 9), self.rng.integers(1, most + 1)]))

    def kind(self):
        return self.pick(["int8", "uint8"])

    def codes(self, kind, *shape):
        low, high = LIMITS[kind]
        if self.rng.random() < 0.3:
            return self.rng.choice(np.array([low, high]), shape)
        return self.rng.integers(low, high + 1, shape)

    def zero(self, kind, *shape):
        low, high = LIMITS[kind]
        if self.rng.random() < 0.3:
            return np.full(shape, self.pick([low, 0, high]))
        return self.rng.integers(low, high + 1, shape)

    def scale(self, *shape, low=-7, high=0):
        power = self.rng.integers(low, high, shape)
        more = 1.0 if self.exact else self.rng.uniform(1, 2, shape)
        return (2.0 ** power * more).astype(F32)

    # ---- the node

    def give(self, array, kind=None):
        """Integers travel as their kind, and are returned in 64 bits."""
        self.inputs.append(None if array is None else
                           np.asarray(array).astype(KINDS[kind]) if kind else array)
        return None if array is None else np.asarray(array, np.int64) if kind else array

    def rounded(self, real, kind, zero, roundings=4):
        """What codes lie at these numbers: the lowest and the highest that may be."""
        low, high = LIMITS[kind]
        error = 0 if self.exact else roundings * ONE_ROUNDING * (np.abs(real) + abs(zero) + 1)
        ends = [np.clip(np.rint(real + e) + zero, low, high) for e in (-error, error)]
        self.outputs.append((KINDS[kind], *ends))

    def equals(self, array):
        self.outputs.append((array.dtype, array, array))

    def near(self, real, error):
        """Floats, whose bits are those of one tier."""
        self.per_tier = True
        self.outputs.append((F32, real - error, real + error))


def operator(*names, domain=""):
    def register(draw):
        for name in names:
            OPERATORS[name] = (domain, draw)
        return draw
    return register


def span(c, real):
    """Sums beyond 24 bits are rounded on their way to float."""
    if c.exact and np.abs(real).max(initial=0) >= 1 << 24:
        c.exact = False


# ---- sums in 64-bit integers

def product(a, za, b, zb):
    return np.matmul(a - za, b - zb)


def draw_conv(c):
    """(shape of x, shape of w); attributes are set."""
    rank = c.pick([1, 2, 2, 2, 3])
    group = c.pick([1, 1, 1, 2, c.size(20)])
    depthwise = c.rng.random() < 0.3
    channels = 1 if depthwise else c.size(20)
    maps = group * (1 if depthwise and c.rng.random() < 0.6 else c.size(24))
    kernel = [c.pick([1, 1, 2, 3, 3, 5]) for _ in range(rank)]
    strides = [c.pick([1, 1, 2, 3]) for _ in range(rank)]
    dilations = [c.pick([1, 1, 1, 2]) for _ in range(rank)]
    pads = [c.pick([0, 0, 1, 2]) for _ in range(2 * rank)]
    sizes = [(k - 1) * d + 1 + c.size(11 if rank < 3 else 4)
             for k, d in zip(kernel, dilations, strict=True)]
    c.attributes = {"group": group, "kernel_shape": kernel, "strides": strides,
                    "dilations": dilations, "pads": pads}
    return (c.pick([1, 1, 2]), channels * group, *sizes), (maps, channels, *kernel)


def conv_sums(c, x, zx, w, zw):
    """Padding holds the zero point of x."""
    at, rank = c.attributes, x.ndim - 2
    kernel, strides, dilations = at["kernel_shape"], at["strides"], at["dilations"]
    x = np.pad(x - zx, [(0, 0), (0, 0), *zip(at["pads"][:rank], at["pads"][rank:], strict=True)])
    w = w - np.reshape(zw, (-1,) + (1,) * (w.ndim - 1))
    span_of = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    win = np.lib.stride_tricks.sliding_window_view(x, span_of, tuple(range(2, 2 + rank)))
    win = win[(slice(None), slice(None), *(slice(None, None, s) for s in strides),
               *(slice(None, None, d) for d in dilations))]
    group, (n, _, *out) = at["group"], win.shape[:2 + rank]
    channels, maps = w.shape[1], w.shape[0] // group
    win = win.reshape(n, group, channels, *out, -1)
    w = w.reshape(group, maps, channels, -1)
    letters = "xyz"[:rank]
    return np.einsum(f"ngc{letters}t,gmct->ngm{letters}", win, w).reshape(n, group * maps, *out)


# ---- in float32, as the specification says

def dynamic_codes(x):
    """DynamicQuantizeLinear in float32: (codes less their zero point, scale)."""
    low, high = min(x.min(), F32(0)), max(x.max(), F32(0))
    scale = F32(high - low) / F32(255) if high > low else F32(1)
    zero = np.clip(np.rint(F32(0) - low / scale), 0, 255)
    codes = np.clip(np.rint(x / scale).astype(np.float64) + zero, 0, 255)
    return (codes - zero).astype(np.int64), float(scale)
