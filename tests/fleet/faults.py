"""What breaks an edge, and what mends it."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fleet import Edge, Fleet, request
from publisher import Publisher


@dataclass(frozen=True)
class Fault:
    # What is done, as a line of the page says it.
    words: str
    begins: Callable[[Fleet, Edge], None]
    ends: Callable[[Fleet, Edge], None]


def begin_network(fleet: Fleet, edge: Edge) -> None:
    fleet.cut(edge)


def end_network(fleet: Fleet, edge: Edge) -> None:
    if not (edge.link and edge.link.alive()):
        fleet.join(edge)


def copied_scripts(edge: Edge) -> list[Path]:
    """The scripts of the verified copy."""
    return sorted(edge.directory.glob("data/bundle/*/files/**/*.sh"))


def begin_tamper(_: Fleet, edge: Edge) -> None:
    scripts = copied_scripts(edge)
    if not scripts:
        raise RuntimeError(f"{edge.name} has no bundle whose copy could be changed")
    for script in scripts:
        script.parent.chmod(0o755)
        # One that runs at the moment cannot be written to.
        new = edge.directory / "changed.sh"
        new.write_text("#!/bin/sh\nexit 0\n")
        new.chmod(0o755)
        new.rename(script)


def end_tamper(_: Fleet, edge: Edge) -> None:
    status, answer = request(edge.directory / "c", "POST", "/v1/reload")
    if status != 200:
        raise RuntimeError(f"{edge.name} does not reload: {status} {answer}")


def begin_kill(fleet: Fleet, edge: Edge) -> None:
    fleet.stop(edge, signal.SIGKILL)


def begin_key(fleet: Fleet, edge: Edge) -> None:
    fleet.stop(edge)
    fleet.start(edge, Publisher(fleet).make_key("wrong"))
    fleet.wait_ready(edge)


def start_again(fleet: Fleet, edge: Edge) -> None:
    fleet.stop(edge)
    fleet.start(edge, Publisher(fleet).make_key())
    fleet.wait_ready(edge)


FAULTS = {
    "network": Fault("its network is gone", begin_network, end_network),
    "tamper": Fault("somebody rewrites the scripts of its verified copy", begin_tamper, end_tamper),
    "kill": Fault("it is killed", begin_kill, start_again),
    "key": Fault("its settings have the key of somebody else", begin_key, start_again),
}


def mend(fleet: Fleet, edge: Edge) -> None:
    """Whatever is broken about it."""
    end_network(fleet, edge)
    start_again(fleet, edge)
