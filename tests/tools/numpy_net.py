"""The few layers that the training scripts of the bundled models need, in numpy alone.

Tensors are NCHW float32. A layer keeps what its backward pass needs from the last forward pass, so
one network object trains one batch at a time. Convolutions go through im2col and one matrix
product. Everything is seeded: the same numpy on the same machine gives the same weights.
"""
import numpy as np


class Conv:
    """A convolution of stride 1 that keeps the image's size (zero padding)."""

    def __init__(self, rng, inputs, outputs, size, gain=2.0):
        scale = np.sqrt(gain / (inputs * size * size))
        self.size = size
        self.w = (rng.standard_normal((outputs, inputs, size, size)) * scale).astype(np.float32)
        self.b = np.zeros(outputs, np.float32)

    def columns(self, x):
        n, c, h, w = x.shape
        pad = self.size // 2
        padded = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (self.size, self.size), (2, 3))
        return np.ascontiguousarray(windows.transpose(0, 2, 3, 1, 4, 5)).reshape(n * h * w, -1)

    def forward(self, x):
        n, _, h, w = x.shape
        self.shape, self.cols = x.shape, self.columns(x)
        y = self.cols @ self.w.reshape(len(self.w), -1).T + self.b
        return np.ascontiguousarray(y.reshape(n, h, w, -1).transpose(0, 3, 1, 2))

    def backward(self, dy):
        n, c, h, w = self.shape
        flat = dy.transpose(0, 2, 3, 1).reshape(-1, dy.shape[1])
        self.dw = (flat.T @ self.cols).reshape(self.w.shape)
        self.db = flat.sum(0)
        dcols = (flat @ self.w.reshape(len(self.w), -1)).reshape(n, h, w, c, self.size, self.size)
        pad = self.size // 2
        dx = np.zeros((n, c, h + 2 * pad, w + 2 * pad), np.float32)
        for i in range(self.size):
            for j in range(self.size):
                dx[:, :, i:i + h, j:j + w] += dcols[:, :, :, :, i, j].transpose(0, 3, 1, 2)
        return dx[:, :, pad:pad + h, pad:pad + w]

    def parameters(self):
        return [("w", "dw"), ("b", "db")]


class Dense:
    """A fully connected layer; the weight is stored outputs x inputs (Gemm with transB = 1)."""

    def __init__(self, rng, inputs, outputs):
        self.w = (rng.standard_normal((outputs, inputs)) * np.sqrt(2.0 / inputs)).astype(np.float32)
        self.b = np.zeros(outputs, np.float32)

    def forward(self, x):
        self.x = x
        return x @ self.w.T + self.b

    def backward(self, dy):
        self.dw, self.db = dy.T @ self.x, dy.sum(0)
        return dy @ self.w

    def parameters(self):
        return [("w", "dw"), ("b", "db")]


class Relu:
    def forward(self, x):
        self.mask = x > 0
        return x * self.mask

    def backward(self, dy):
        return dy * self.mask

    def parameters(self):
        return []


class MaxPool:
    """Windows of 2x2, stride 2. Of equal maxima each gets the gradient's share."""

    def forward(self, x):
        n, c, h, w = x.shape
        self.blocks = x.reshape(n, c, h // 2, 2, w // 2, 2)
        y = self.blocks.max((3, 5), keepdims=True)
        mask = (self.blocks == y).astype(np.float32)
        self.mask = mask / mask.sum((3, 5), keepdims=True)
        return y.reshape(n, c, h // 2, w // 2)

    def backward(self, dy):
        n, c, h, w = dy.shape
        return (self.mask * dy.reshape(n, c, h, 1, w, 1)).reshape(n, c, 2 * h, 2 * w)

    def parameters(self):
        return []


class Flatten:
    def forward(self, x):
        self.shape = x.shape
        return x.reshape(len(x), -1)

    def backward(self, dy):
        return dy.reshape(self.shape)

    def parameters(self):
        return []


class DepthToSpace:
    """ONNX's DepthToSpace with blocksize 2 and mode DCR."""

    def forward(self, x):
        n, c, h, w = x.shape
        y = x.reshape(n, 2, 2, c // 4, h, w).transpose(0, 3, 4, 1, 5, 2)
        return y.reshape(n, c // 4, 2 * h, 2 * w)

    def backward(self, dy):
        n, c, h, w = dy.shape
        x = dy.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 3, 5, 1, 2, 4)
        return np.ascontiguousarray(x.reshape(n, 4 * c, h // 2, w // 2))

    def parameters(self):
        return []


class Network:
    """Layers in a row with an Adam optimizer."""

    def __init__(self, layers):
        self.layers = layers
        self.steps = 0
        self.moments = {}

    def forward(self, x):
        for layer in self.layers:
            x = layer.forward(x)
        return x

    def backward(self, dy):
        for layer in reversed(self.layers):
            dy = layer.backward(dy)

    def adam(self, rate, decay=0.0):
        self.steps += 1
        for index, layer in enumerate(self.layers):
            for name, gradient_name in layer.parameters():
                value, gradient = getattr(layer, name), getattr(layer, gradient_name)
                zeros = (np.zeros_like(value), np.zeros_like(value))
                m, v = self.moments.setdefault((index, name), zeros)
                m += 0.1 * (gradient - m)
                v += 0.001 * (gradient * gradient - v)
                step = (m / (1 - 0.9 ** self.steps)) / (
                    np.sqrt(v / (1 - 0.999 ** self.steps)) + 1e-8)
                value -= (rate * (step + decay * value)).astype(np.float32)
