"""Lines of a drawn picture by rapidocr-onnxruntime: detector, direction and recognizer."""
import os
import tempfile

from PIL import Image, ImageDraw, ImageFont
from rapidocr_onnxruntime import RapidOCR

image = Image.new("RGB", (640, 200), "white")
draw = ImageDraw.Draw(image)
draw.text((20, 30), "Hello world 2026", fill="black", font=ImageFont.load_default(36))
draw.text((20, 110), "a second line", fill="black", font=ImageFont.load_default(36))
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "lines.png")
    image.save(path)
    found, _ = RapidOCR()(path)
for box, text, score in found or []:
    print(text, round(float(score), 2), [[round(x) for x in point] for point in box])
