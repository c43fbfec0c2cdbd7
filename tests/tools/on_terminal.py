#!/usr/bin/env python3
"""Run a command on a terminal of its own and pass on what appears there.

usage: on_terminal.py COLUMNS COMMAND [ARGUMENT...]
"""
import fcntl
import os
import pty
import struct
import sys
import termios

columns = int(sys.argv[1])
pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    os.execvp(sys.argv[2], sys.argv[2:])
shown = b""
while True:
    try:
        piece = os.read(terminal, 65536)
    except OSError:  # the command has closed it
        break
    if not piece:
        break
    shown += piece
sys.stdout.buffer.write(shown.replace(b"\r\n", b"\n"))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
