"""Takes the library that `make dropin` built along, if there is one: else the package looks for an installed one."""
import pathlib
import shutil
import subprocess

from setuptools import setup
from setuptools.command.build_py import build_py

BUILT = pathlib.Path(__file__).resolve().parents[1] / "build/lib/onnxruntime/libonnxruntime.so.1"


class WithLibrary(build_py):
    def run(self):
        super().run()
        if BUILT.exists():
            library = pathlib.Path(self.build_lib) / "ort_tools" / BUILT.name
            shutil.copy(BUILT, library)
            if shutil.which("strip"):
                subprocess.run(["strip", "--strip-unneeded", str(library)], check=True)


setup(cmdclass={"build_py": WithLibrary})
