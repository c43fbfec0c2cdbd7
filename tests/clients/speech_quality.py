"""How a listener would rate made-up speech with and without lost packets, by speechmos's PLCMOS."""
import numpy as np
from speechmos import plcmos

rate = 16000
time = np.arange(3 * rate) / rate
pitch = 130 + 25 * np.sin(2 * np.pi * 2 * time)
clean = sum(np.sin(2 * np.pi * k * np.cumsum(pitch) / rate) / k for k in range(1, 15)) * 0.05
clean *= 0.5 + 0.5 * np.sin(2 * np.pi * 3 * time)
lossy = clean.copy()
for start in range(1000, len(lossy), 6000):
    lossy[start:start + 1600] = 0
for name, sound in (("clean", clean), ("lossy", lossy)):
    np.random.seed(7)  # the raters are drawn
    judge = plcmos.PLCMOS()
    print(name, f"{judge.get_mos(sound):.3g}")
