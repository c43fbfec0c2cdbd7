"""Letters and places of letters by ddddocr, with each of its models."""
import io

import ddddocr
from PIL import Image, ImageDraw, ImageFont


def picture(text, size):
    image, file = Image.new("RGB", size, "white"), io.BytesIO()
    ImageDraw.Draw(image).text((10, 2), text, fill="black", font=ImageFont.load_default(30))
    image.save(file, "png")
    return file.getvalue()


print(ddddocr.DdddOcr(show_ad=False).classification(picture("a7Xq", (120, 40))))
print(ddddocr.DdddOcr(show_ad=False, beta=True).classification(picture("a7Xq", (120, 40))))
print(sorted(ddddocr.DdddOcr(det=True, show_ad=False).detection(picture("Hello 2026", (320, 120)))))
