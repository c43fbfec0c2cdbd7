"""Where there is speech, by the voice detector of faster-whisper: in a made-up voice, and none in noise."""
import numpy as np
from faster_whisper.vad import VadOptions, get_speech_timestamps

rate = 16000
time = np.arange(3 * rate) / rate
pitch = 120 + 20 * np.sin(2 * np.pi * 3 * time)
voice = sum(np.sin(2 * np.pi * k * np.cumsum(pitch) / rate) / k for k in range(1, 20))
voice *= (np.sin(2 * np.pi * 4 * time) > -0.3) * 0.2
noise = np.random.default_rng(1).normal(0, 1e-3, 2 * rate)
sound = np.concatenate([noise, voice, noise]).astype(np.float32)
print(get_speech_timestamps(sound, VadOptions(threshold=0.3)))
