"""The pitch of a made-up voice by swift-f0, whole and in pieces."""
import numpy as np
from swift_f0 import SwiftF0

rate = 16000
time = np.arange(2 * rate) / rate
pitch = 150 + 60 * np.sin(2 * np.pi * time)
voice = sum(np.sin(2 * np.pi * k * np.cumsum(pitch) / rate) / k for k in range(1, 9)).astype(np.float32) * 0.1
detector = SwiftF0(threads=1)
found = detector.detect(voice, rate)
for name, value in sorted(vars(found).items()):
    if isinstance(value, np.ndarray):
        print(name, value.shape, value.dtype, [f"{x:.3g}" for x in value[::20]])
stream = detector.stream()
pieces = [stream.push(piece, rate) for piece in np.array_split(voice, 9)] + [stream.flush()]
print([len(next(v for v in vars(p).values() if isinstance(v, np.ndarray))) for p in pieces])
