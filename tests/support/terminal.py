"""Runs a program on a terminal of its own: terminal.py COLUMNS PROMPT ANSWER PROGRAM [ARGUMENT...]

Types ANSWER (with Python's escapes) once the program has written PROMPT, and prints JSON: what was on the terminal, and
the exit code, which is negative for a signal.
"""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

columns, prompt, answer = int(sys.argv[1]), sys.argv[2].encode(), sys.argv[3].encode().decode("unicode_escape").encode()
pid, terminal = pty.fork()
if pid == 0:
    # Whoever runs the tests in the background may have had it ignored.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    os.execv(sys.argv[4], sys.argv[4:])
seen, typed, deadline = b"", not prompt, time.monotonic() + 60
while time.monotonic() < deadline:
    if not select.select([terminal], [], [], 1)[0]:
        continue
    try:
        part = os.read(terminal, 4096)
    except OSError:
        break
    if not part:
        break
    seen += part
    if not typed and prompt in seen:
        os.write(terminal, answer)
        typed = True
else:
    os.kill(pid, 9)
_, status = os.waitpid(pid, 0)
print(json.dumps({"seen": seen.decode(errors="replace"), "code": os.waitstatus_to_exitcode(status), "asked": typed}))
