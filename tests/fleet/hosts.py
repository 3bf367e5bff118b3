"""Hosts of agents: one beside each edge, which asks about tool calls and remembers each verdict that it heard."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from fleet import WORKSPACE, Edge, request

# Between two events of a host.
PAUSE = 0.05


@dataclass(frozen=True)
class Heard:
    edge: str
    decision: str
    verdict: str
    by: str | None


def ask(edge: Edge, command: str, run: str = "probe") -> Heard:
    """Asks once. Raises `OSError` if there is no verdict."""
    event = {
        "event": "before_tool_dispatch", "session_id": "s", "run_id": run, "workspace_id": WORKSPACE, "tool_name": "Bash",
        "tool_input": {"command": command},
    }
    try:
        status, outcome = request(edge.directory / "s", "POST", "/v1/events", event)
    except OSError as error:
        raise OSError(f"{edge.name} does not answer: {error}") from error
    if status != 200:
        raise OSError(f"{edge.name} answered {status}: {outcome}")
    return Heard(edge.name, outcome["decision_id"], outcome["verdict"], outcome.get("by"))


class Hosts:
    """A thread for each edge, from `with` until its end."""

    def __init__(self, edges: list[Edge]) -> None:
        self.edges = edges
        self.heard: list[Heard] = []
        self.unanswered = 0
        self.over = threading.Event()
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self._run, args=(edge,)) for edge in edges]

    def __enter__(self) -> Hosts:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self.over.set()
        for thread in self.threads:
            thread.join()

    def _run(self, edge: Edge) -> None:
        number = 0
        while not self.over.wait(PAUSE):
            number += 1
            command = "ssh prod.example.com" if number % 10 == 0 else f"make test-{number}"
            try:
                heard = ask(edge, command, f"{edge.name}-run-{number // 50}")
            except OSError:
                with self.lock:
                    self.unanswered += 1
                continue
            with self.lock:
                self.heard.append(heard)

    def note(self, heard: Heard) -> Heard:
        """Also what was asked beside the load is to be in the audit."""
        with self.lock:
            self.heard.append(heard)
        return heard
