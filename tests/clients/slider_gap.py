"""The gap of a drawn puzzle by captcha-recognizer: boxes, and masks of an instance segmentation."""
import numpy as np
from captcha_recognizer.slider import Slider
from PIL import Image, ImageDraw

rng = np.random.default_rng(3)
noise = rng.integers(90, 160, (160, 320, 3)).astype(np.uint8)
picture = Image.fromarray(noise).resize((320, 160))
draw = ImageDraw.Draw(picture)
draw.rectangle((200, 60, 244, 104), fill=(40, 40, 40), outline=(255, 255, 255))
draw.rectangle((10, 60, 54, 104), fill=(200, 120, 60), outline=(255, 255, 255))
image = np.ascontiguousarray(np.asarray(picture)[:, :, ::-1])
slider = Slider()
box, score = slider.identify(image)
print([round(float(x)) for x in box], round(float(score), 2))
inputs = {slider.session.get_inputs()[0].name: slider.preprocess(image, (640, 640))}
for output in slider.session.run(None, inputs):
    print(output.shape, np.round(np.abs(output).mean(), 3))
