"""What float arithmetic on a device may make of exact numbers: values in double precision, each with a bound of how far
the computed float may lie from it (running error analysis: Higham, Accuracy and Stability of Numerical Algorithms, 2nd
edition, sections 3.1 and 3.3).

The model: one operation errs by at most a factor 1 + U, and a sum of n products, in whatever order and fused or not, by
at most n U / (1 - n U) of the sum of their sizes. The functions err by what OpenCL's full profile allows (OpenCL C
specification, "Relative error as ULPs"): exp 3 ULP, division 2.5 ULP, tanh 5 ULP. A ULP is at most 2 U of its number.
"""
import numpy as np

U = 2.0**-24


class Near:
    def __init__(self, value, error=None):
        self.value = np.asarray(value, np.float64)
        self.error = np.zeros_like(self.value) if error is None else error

    @property
    def size(self):
        """What the computed number is at most."""
        return np.abs(self.value) + self.error

    def rounded(self, ulps=0.5):
        return Near(self.value, self.error + 2 * ulps * U * self.size)

    def __add__(self, other):
        return Near(self.value + other.value, self.error + other.error).rounded()

    def __sub__(self, other):
        return Near(self.value - other.value, self.error + other.error).rounded()

    def __mul__(self, other):
        error = np.abs(self.value) * other.error + np.abs(other.value) * self.error + self.error * other.error
        return Near(self.value * other.value, error).rounded()

    def __getitem__(self, where):
        return Near(self.value[where], self.error[where])

    def through(self, weight):
        """Products of rows with rows of `weight`, which is exact."""
        terms = weight.shape[1]
        sizes = np.abs(weight.astype(np.float64)).T
        error = self.error @ sizes + terms * U / (1 - terms * U) * (self.size @ sizes)
        return Near(self.value @ weight.astype(np.float64).T, error)


def nearest_to_zero(x):
    return np.maximum(np.abs(x.value) - x.error, 0)


def tanh(x):
    """Its slope, 1 - tanh^2, is the steepest nearest to 0."""
    return Near(np.tanh(x.value), (1 - np.tanh(nearest_to_zero(x))**2) * x.error).rounded(5)


def sigmoid(x):
    """1 / (1 + exp(-x)). Its slope is s (1 - s), the steepest nearest to 0. Of the result s, the error of exp counts with
    the part that exp(-x) has of the sum, 1 - s; sum and quotient add theirs."""
    s, steepest = 1 / (1 + np.exp(-x.value)), 1 / (1 + np.exp(nearest_to_zero(x)))
    error = steepest * (1 - steepest) * x.error
    relative = 2 * 3 * U * (1 - s) + U + 2 * 2.5 * U
    return Near(s, error + 1.01 * relative * (s + error))  # 1.01: products of two errors


def lstm(x, w, r, b):
    """Y, Y_h, Y_c of one direction as LSTM of ONNX defines them: gates i, o, f, c."""
    hidden = r.shape[1]
    bias = Near(b[:4 * hidden]) + Near(b[4 * hidden:])
    h = c = Near(np.zeros((x.shape[1], hidden)))
    all_h = []
    for step in x:
        gates = Near(step).through(w) + bias + h.through(r)
        i, o, f, g = (gates[:, k * hidden:(k + 1) * hidden] for k in range(4))
        c = sigmoid(f) * c + sigmoid(i) * tanh(g)
        h = sigmoid(o) * tanh(c)
        all_h.append(h)
    return all_h, h, c


def gru(x, w, r, b, linear):
    """Y, Y_h: gates z, r, h; linear_before_reset."""
    hidden = r.shape[1]
    split = 3 * hidden if not linear else 2 * hidden  # what of the second bias is added to the first
    second = np.where(np.arange(3 * hidden) < split, b[3 * hidden:], 0).astype(np.float32)
    bias = Near(b[:3 * hidden]) + Near(second)
    h = Near(np.zeros((x.shape[1], hidden)))
    all_h = []
    for step in x:
        gates = Near(step).through(w) + bias
        z, reset, v = (gates[:, k * hidden:(k + 1) * hidden] for k in range(3))
        rz, rr, rh = (r[k * hidden:(k + 1) * hidden] for k in range(3))
        z, reset = sigmoid(z + h.through(rz)), sigmoid(reset + h.through(rr))
        if linear:
            v = tanh(v + reset * (h.through(rh) + Near(b[5 * hidden:])))
        else:
            v = tanh(v + (reset * h).through(rh))
        h = v + z * (h - v)
        all_h.append(h)
    return all_h, h


def rnn(x, w, r, b):
    hidden = r.shape[1]
    bias = Near(b[:hidden]) + Near(b[hidden:])
    h = Near(np.zeros((x.shape[1], hidden)))
    all_h = []
    for step in x:
        h = tanh(Near(step).through(w) + bias + h.through(r))
        all_h.append(h)
    return all_h, h


def stacked(directions):
    """Y [steps, directions, batch, hidden] and the last states [directions, batch, hidden] as floats; the bound of each,
    in which rounding the expected values to float counts, too."""
    all_h = [Near(np.stack([h.value for h in steps]), np.stack([h.error for h in steps])) for steps, *_ in directions]
    results = [(all_h, 1)] + [(list(last), 0) for last in zip(*(d[1:] for d in directions))]
    outputs, bounds = [], []
    for parts, axis in results:
        value = np.stack([p.value for p in parts], axis)
        error = np.stack([p.error for p in parts], axis)
        outputs.append(value.astype(np.float32))
        bounds.append(float(np.max(error + U * np.abs(value))))
    return outputs, bounds


def recurrent(op, x, w, r, b, linear=False):
    """Outputs of a recurrent operator whose second direction, where there is one, reads x from behind, and their bounds."""
    directions = []
    for d in range(w.shape[0]):
        run = {"LSTM": lstm, "GRU": lambda *a: gru(*a, linear), "RNN": rnn}[op]
        result = run(x[::-1] if d else x, w[d], r[d], b[d])
        directions.append((result[0][::-1] if d else result[0], *result[1:]))
    return stacked(directions)
