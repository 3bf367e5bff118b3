"""Draws what hookyard prints on a terminal: draw.py PROGRAM DIRECTORY

Runs the program on terminals of its own, in a workspace that it writes, and saves their last screens as SVG.
"""

import fcntl
import itertools
import json
import os
import pathlib
import pty
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time

import pyte
from rich.console import Console
from rich.style import Style
from rich.terminal_theme import TerminalTheme
from rich.text import Text

COLUMNS = 100

THEME = TerminalTheme(
    (22, 27, 34),
    (201, 209, 217),
    [(72, 79, 88), (255, 123, 114), (63, 185, 80), (210, 153, 34), (88, 166, 255), (188, 140, 255), (57, 197, 207), (177, 186, 196)],
    [(110, 118, 129), (255, 161, 152), (86, 211, 100), (227, 179, 65), (121, 192, 255), (210, 168, 255), (86, 212, 221), (240, 246, 252)],
)

# Names of fonts only: the picture loads nothing.
FORMAT = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
.{unique_id}-title {{ font-size: 18px; font-family: system-ui, sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""

GUARD = """name: no-force-push
events: [before_tool_dispatch]
matcher: ^Bash$
handler:
  type: command
  command: sh .openharness/hooks/scripts/no-force-push.sh
  timeout_seconds: 5
on_error: deny
on_timeout: deny
"""

SCRIPT = """if grep -q 'git push.*--force'; then
  echo "force pushes are not allowed here" >&2
  exit 2
fi
"""

NOTES = """name: notes
events: [after_tool_dispatch, run_completed]
handler:
  type: command
  command: cat >/dev/null
"""

LINT = """name: lint
events: [before_tool_dispatch]
matcher: ^(Edit|Write)$
priority: 10
handler:
  type: command
  command: "true"
"""

BROKEN = """name: no-secrets
events: [before_tool_dispatch, before_tool_call]
matcher: ^(Write|Edit$
handler:
  type: command
  command: sh .openharness/hooks/scripts/no-secrets.sh
  timeout_second: 5
on_error: deny
"""


def event(kind, tool, command, run="r"):
    return {"event": kind, "session_id": "s", "run_id": run, "tool_name": tool, "tool_input": {"command": command}}


class Screen:
    """A terminal with a program on it."""

    def __init__(self, arguments, directory, rows):
        self.screen = pyte.Screen(COLUMNS, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(directory)
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, COLUMNS, 0, 0))
            os.environ["TERM"] = "xterm-256color"
            os.execv(arguments[0], arguments)

    def read(self, seconds):
        """Reads until the program ends or the time is over; returns whether it has ended."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if not select.select([self.terminal], [], [], left)[0]:
                continue
            try:
                part = os.read(self.terminal, 65536)
            except OSError:
                part = b""
            if not part:
                return True
            self.stream.feed(part)
        return False

    def text(self):
        """The screen without its empty last lines."""
        lines = [self.line(row) for row in range(self.screen.lines)]
        while lines and not lines[-1].plain.strip():
            lines.pop()
        return Text("\n").join(lines)

    def line(self, row):
        cells = [self.screen.buffer[row][column] for column in range(self.screen.columns)]
        while cells and cells[-1] == self.screen.default_char:
            cells.pop()
        alike = itertools.groupby(cells, key=lambda cell: cell._replace(data=""))
        return Text.assemble(*(("".join(cell.data for cell in part), style(first)) for first, part in alike))

    def end(self):
        os.close(self.terminal)
        try:
            os.kill(self.pid, signal.SIGTERM)
        except ProcessLookupError:
            pass
        os.waitpid(self.pid, 0)


def style(cell):
    """How a cell of the emulator looks."""
    return Style(
        color=colour(cell.fg), bgcolor=colour(cell.bg), bold=cell.bold, reverse=cell.reverse, underline=cell.underscore
    )


def colour(name):
    """A colour of the emulator as Rich names it."""
    if name == "default":
        return None
    name = {"brown": "yellow", "brightbrown": "bright_yellow"}.get(name, name)
    if name.startswith("bright"):
        return "bright_" + name.removeprefix("bright").removeprefix("_")
    return f"#{name}" if len(name) == 6 and all(digit in "0123456789abcdef" for digit in name) else name


def save(path, prompt, text):
    """Saves a command and its screen."""
    console = Console(record=True, width=COLUMNS, file=open(os.devnull, "w"), force_terminal=True, color_system="truecolor")
    console.print(Text.assemble(("$ ", "bright_black"), (prompt, "bold")), soft_wrap=False)
    console.print(text, soft_wrap=False)
    name = path.stem
    path.write_text(console.export_svg(title="", theme=THEME, code_format=FORMAT, unique_id=f"hookyard-{name}"))
    print(path)


def write(workspace, files):
    for name, text in files.items():
        path = workspace / ".openharness/hooks" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def once(program, workspace, arguments):
    """What a command prints on a terminal."""
    screen = Screen([program, *arguments], workspace, 60)
    assert screen.read(60), "the command ends"
    text = screen.text()
    screen.end()
    return text


def send(socket, ended):
    """Sends the events of a few runs, some in a second, until it is told to end."""
    number = 0
    while not ended.wait(0.02):
        number += 1
        command = "git push --force" if number % 23 == 0 else "npm test"
        kind = "after_tool_dispatch" if number % 3 == 0 else "before_tool_dispatch"
        tool = "Edit" if number % 4 == 0 else "Bash"
        body = json.dumps(event(kind, tool, command, f"run-{number % 7}"))
        subprocess.run(
            ["curl", "--silent", "--output", os.devnull, "--unix-socket", socket, "--data", body, "--header", "content-type: application/json", "http://localhost/v1/events"],
            check=False,
        )


def live(program, workspace, directory):
    """The screen of `top` beside a daemon with some work."""
    socket = directory / "socket"
    daemon = subprocess.Popen(
        [program, "serve", "--workspace", workspace, "--socket", socket, "--home", directory / "home", "--set", "trust=off"],
        stderr=subprocess.DEVNULL,
    )
    ended = threading.Event()
    sender = threading.Thread(target=send, args=(str(socket), ended))
    try:
        until = time.monotonic() + 60
        while not socket.exists():
            assert time.monotonic() < until, "the daemon starts"
            time.sleep(0.05)
        sender.start()
        screen = Screen([program, "top", "--socket", str(socket)], workspace, 12)
        assert not screen.read(15), "`top` goes on"
        text = screen.text()
        screen.end()
        return text
    finally:
        ended.set()
        if sender.is_alive():
            sender.join()
        daemon.terminate()
        daemon.wait()


def main():
    program, out = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2]).resolve()
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        (directory / "home").mkdir()
        shop = directory / "shop"
        write(shop, {"no-force-push.yaml": GUARD, "scripts/no-force-push.sh": SCRIPT, "notes.yaml": NOTES, "lint.yaml": LINT})
        (shop / "event.json").write_text(json.dumps(event("before_tool_dispatch", "Bash", "git push --force")))
        home = ["--home", str(directory / "home")]
        save(out / "explain.svg", "hookyard explain --event event.json", once(program, shop, ["explain", "--event", "event.json", *home, "--set", "trust=off"]))
        save(out / "top.svg", "hookyard top", live(program, shop, directory))
        broken = directory / "broken"
        write(broken, {"no-secrets.yaml": BROKEN, "scripts/no-secrets.sh": SCRIPT})
        save(out / "check.svg", "hookyard check", once(program, broken, ["check", *home, "--set", "trust=off"]))


main()
