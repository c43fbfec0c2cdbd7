#!/usr/bin/env python3
"""type_completions.py SHELL FOLDER - types commands into an interactive shell with the completions of FOLDER
(build/completions), presses Tab, and looks for what it should have completed.

The tools are found by PATH. Prints a line per case that fails and closes with "N passed, N failed, 0 skipped".
"""
import fcntl
import os
import pty
import re
import select
import struct
import sys
import tempfile
import termios
import time

SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"],
             "for f in {0}/*.bash; do . $f; done; echo READY$((1+1))"),
    "zsh": (["zsh", "-f", "-i"],
            "fpath=({1} $fpath); autoload -U compinit; compinit -u -D; echo READY$((1+1))"),
    "fish": (["fish", "--no-config", "-i"],
             "function fish_prompt; echo '$ '; end; for f in {0}/*.fish; source $f; end; "
             "echo READY(math 1+1)"),
}
# What is typed, and what the line ends with after a Tab.
CASES = [
    ("ort-run --no-pro", "--no-progress"),
    ("ort-inspect --sv", "--svg"),
    ("ort-run --math s", "strict"),
    ("ort-run --math=s", "--math=strict"),
    ("ort-optimize --disable constant_fo", "constant_fold"),
    ("ort-draw --detect ultra", "ultraface"),
    ("ort-run net.on", "net.onnx"),
    ("ort-run --expect net.o", "net.onnx"),
    ("ort-run --expect=net.o", "--expect=net.onnx"),
    ("ort-run -i x=net.o", "x=net.onnx"),
    ("ort-run --input=x=net.o", "--input=x=net.onnx"),
    ("ort-tensor two", "two\\ words.npy"),
]


class Terminal:
    def __init__(self, argv, folder):
        self.shown = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.environ.update(TERM="xterm", PS1="$ ", HOME=folder, COLUMNS="150", LC_ALL="C.UTF-8")
            os.execvp(argv[0], argv)
        # Wide enough for whole lines: fish cuts what doesn't fit beside its prompt.
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 150, 0, 0))

    def type(self, text):
        self.shown = ""
        os.write(self.fd, text.encode())

    def shows(self, wanted, seconds=20):
        """Whether the text appears, however the shell moves its cursor in between."""
        end = time.time() + seconds
        while time.time() < end:
            if wanted in self.shown:
                return True
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    data = os.read(self.fd, 65536)
                except OSError:
                    return False
                if re.search(rb"\x1b\[0?c", data):  # fish asks what terminal this is
                    os.write(self.fd, b"\x1b[?62;c")
                self.shown += self.plain(data.decode(errors="replace"))
        return False

    @staticmethod
    def plain(text):
        text = re.sub(r"\x1b\][^\x07\x1b]*(\x07|\x1b\\)", "", text)
        return re.sub(r"\x1b[\[(][0-9;?=>]*[a-zA-Z]|\x1b[=>]|[\r\n\x07]", "", text)


def completes(terminal, typed, wanted, shell):
    terminal.type(typed)
    terminal.shows(typed, 5)
    terminal.shows("\0", 0.2)
    terminal.type("\t")
    # A shell adds what lacks, or writes the line anew.
    done = terminal.shows(wanted[len(os.path.commonprefix([wanted, typed.split()[-1]])):], 5)
    said = terminal.shown
    terminal.type("\x03" if shell == "fish" else "\x15")
    terminal.shows("\0", 0.3)
    terminal.shown = said
    return done


def run(shell, completions):
    with tempfile.TemporaryDirectory() as folder:
        for name in ("net.onnx", "two words.npy"):
            open(os.path.join(folder, name), "w").close()
        functions = os.path.join(folder, "functions")  # zsh looks for files named as the function
        os.mkdir(functions)
        for name in os.listdir(completions):
            if name.endswith(".zsh"):
                os.symlink(os.path.join(completions, name), os.path.join(functions, "_" + name[:-4]))
        argv, init = SHELLS[shell]
        terminal = Terminal(argv, folder)
        terminal.type(init.format(completions, functions) + "\n")
        if not terminal.shows("READY2", 60):
            print(f"not ok {shell} doesn't start: {terminal.shown[-200:]!r}")
            return 0, 1
        failed = 0
        for typed, wanted in CASES:
            # A Tab that comes while the line is still being drawn is lost on some: then once more.
            if not any(completes(terminal, typed, wanted, shell) for _ in range(4)):
                failed += 1
                print(f"not ok {shell}: {typed!r} + Tab shows {terminal.shown!r}, wanted {wanted!r}")
        return len(CASES) - failed, failed


passed, failed = run(sys.argv[1], os.path.abspath(sys.argv[2]))
print(f"{passed} passed, {failed} failed, 0 skipped")
sys.exit(failed > 0)
