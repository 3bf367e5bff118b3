"""The nodes: their settings and hooks, how they are started, and what they say about themselves."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path

import balancer
from processes import Process, Startable, start

SETTINGS = balancer.SHIPPED.parent / "hookyard.yaml"
HOOK = Path(__file__).resolve().parent / "hook.py"
WORKSPACE = "shop"
# Shorter than that of config/cluster/hookyard.yaml, and longer than the balancer needs to notice.
LAMEDUCK = "2s"
HOOK_FILES = {
    "guard": "before_tool_dispatch",
    "recorder": "run_completed",
}


@dataclass
class Node(Startable):
    name: str
    address: str
    directory: Path
    process: Process | None = None

    @property
    def log(self) -> Path:
        return self.directory / "log"

    def prepare(self, asked: Path) -> None:
        """`asked`: where its hooks write down each event."""
        here = self.directory
        hooks = here / "workspace/.openharness/hooks"
        for made in (hooks, here / "home", here / "data", here / "state"):
            made.mkdir(mode=0o700, parents=True)
        for hook, event in HOOK_FILES.items():
            command = f"exec python3 {HOOK} {asked} {self.name}"
            handler = {"type": "command", "command": command, "mode": "worker", "timeout_seconds": 20}
            text = {"name": hook, "events": [event], "handler": handler}
            if event.startswith("before"):
                text |= {"on_error": "deny", "on_timeout": "deny"}
            self.add_hook(text)

    def add_hook(self, hook: dict) -> None:
        (self.directory / f"workspace/.openharness/hooks/{hook['name']}.yaml").write_text(json.dumps(hook))

    def start(self, program: str, into: list[str], more_settings: dict[str, str], more: tuple[str, ...]) -> None:
        command = [*into, *self.command(program, more_settings), *more]
        self.process = start(self.name, command, self.log, self.directory)

    def checked(self, program: str, more_settings: dict[str, str]) -> subprocess.CompletedProcess[str]:
        """What `serve --check` says of a start."""
        command = [*self.command(program, more_settings), "--check"]
        return subprocess.run(command, cwd=self.directory, capture_output=True, text=True, timeout=60)

    def command(self, program: str, more_settings: dict[str, str]) -> list[str]:
        here = self.directory
        settings = {
            "node": self.name,
            "listen.socket": here / "s",
            "listen.control_socket": here / "c",
            "listen.tcp": self.address,
            "listen.token_file": here.parent / "token",
            "listen.lameduck": LAMEDUCK,
            "data": here / "data",
            "state_directory": here / "state",
            "trust": "off",
            "workspaces": f"{{{WORKSPACE}: {{root: {here / 'workspace'}}}}}",
        } | more_settings
        words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        return [program, "serve", "--config", str(SETTINGS), "--home", str(here / "home"), *words]

    def ready(self) -> bool:
        try:
            return get(self.address, "/readyz") == 200
        except OSError:
            return False

    def drain(self) -> None:
        """As `hookyard stop`, without waiting for the end."""
        status, _ = self._at_socket("POST", "/v1/drain")
        if status not in (200, 202, 204):
            raise RuntimeError(f"POST /v1/drain on {self.name}: {status}")

    def cancel(self, run: str) -> int:
        status, _ = self._at_socket("DELETE", f"/v1/runs/{run}?workspace_id={WORKSPACE}")
        return status

    def metric(self, series: str) -> float | None:
        """By its name and labels; None if the node is not there, or counts no such thing."""
        try:
            status, told = self._at_socket("GET", "/metrics")
        except (OSError, http.client.HTTPException):
            return None
        lines = told.splitlines() if status == 200 else []
        return next((float(line.removeprefix(series)) for line in lines if line.startswith(f"{series} ")), None)

    def _at_socket(self, method: str, path: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection("hookyard")
        connection.sock = socket.socket(socket.AF_UNIX)
        try:
            connection.sock.settimeout(5)
            connection.sock.connect(str(self.directory / "c"))
            connection.request(method, path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()


def alone() -> dict[str, str]:
    """The settings for halts that nodes do not share: what the shipped ones have of a store is switched off."""
    lines = (line.partition("#")[0] for line in SETTINGS.read_text().splitlines())
    return {"cluster.store": "[]", "cluster.monitoring": "[]"} if any("store:" in line for line in lines) else {}


def get(address: str, path: str) -> int:
    host, _, port = address.rpartition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=2)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except http.client.HTTPException as error:
        raise OSError(str(error)) from error
    finally:
        connection.close()
