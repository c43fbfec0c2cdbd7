"""What nudenet finds in the project's pictures: nothing, by scores that both libraries must agree on."""
import pathlib
import sys

import numpy as np
from nudenet import NudeDetector
from PIL import Image

detector = NudeDetector()
for path in sorted((pathlib.Path(sys.argv[1]) / "models/images").glob("*.png"))[::8]:
    print(path.name, [(d["class"], round(d["score"], 2), d["box"]) for d in detector.detect(str(path))])
session = detector.onnx_session
image = np.asarray(Image.open(path).convert("RGB").resize((320, 320)), np.float32).transpose(2, 0, 1)[None] / 255
(scores,) = session.run(None, {session.get_inputs()[0].name: image})
print(scores.shape, np.abs(scores).mean().round(2))
