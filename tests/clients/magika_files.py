"""Kinds of files by magika."""
import pathlib
import sys

from magika import Magika

magika = Magika()
for path in sorted(p for p in (pathlib.Path(sys.argv[1]) / "lib").glob("*/*") if p.is_file())[::8]:
    result = magika.identify_path(path)
    print(path.name, result.output.label, round(result.score, 3))
