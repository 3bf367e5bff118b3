"""Processes that outlive the command that started them, and are ended by their id and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# Those that this process has started itself, so that they can be reaped.
_children: dict[int, subprocess.Popen] = {}


@dataclass(frozen=True)
class Process:
    name: str
    pid: int
    # When it was started, in ticks since the machine was: a process that got the same id later has another one.
    born: str

    def alive(self) -> bool:
        child = _children.get(self.pid)
        if child is not None and child.poll() is not None:
            return False
        return _born(self.pid) == self.born

    def send(self, number: signal.Signals) -> None:
        if self.alive():
            os.kill(self.pid, number)

    def wait(self, seconds: float = 60) -> None:
        wait_for(lambda: not self.alive(), f"the end of {self.name}, process {self.pid}", seconds)

    def cpu_seconds(self) -> float:
        """The processor time that it has taken, without its children."""
        fields = _stat(self.pid)
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Startable:
    """A part that has a process once it was started."""

    name: str
    process: Process | None

    @property
    def running(self) -> Process:
        if self.process is None:
            raise RuntimeError(f"{self.name} was not started")
        return self.process


def start(name: str, command: list[str], log: Path, directory: Path) -> Process:
    with log.open("ab") as output:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=directory, start_new_session=True
        )
    _children[child.pid] = child
    return Process(name, child.pid, _born(child.pid) or "")


def wait_for(condition: Callable[[], bool], what: str, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {seconds:.0f} s for {what}")
        time.sleep(0.01)


def _stat(pid: int) -> list[str]:
    # The name of the program is in parentheses and may contain anything.
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _born(pid: int) -> str | None:
    try:
        fields = _stat(pid)
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] == "Z" else fields[19]
