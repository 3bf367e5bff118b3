"""A daemon, a stub of one, and the cases that all clients share."""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CONFORMANCE = Path(__file__).parents[2] / "conformance"
sys.path.insert(0, str(Path(__file__).parents[1]))


def cases(name):
    return json.loads((CONFORMANCE / f"{name}.json").read_text())


class Daemon:
    """The daemon of `HOOKYARD_PROGRAM`, or of the PATH, with a workspace of the conformance suite."""

    def __init__(self, workspace="workspace"):
        self.workspace = CONFORMANCE / workspace
        self._directory = tempfile.TemporaryDirectory(prefix="hookyard-client-")
        self.path = Path(self._directory.name)
        self.lines, self.socket = str(self.path / "lines.sock"), str(self.path / "hookyard.sock")
        self.token = "0123456789abcdef0123456789abcdef"
        (self.path / "token").touch(0o600)
        (self.path / "token").write_text(self.token)
        (self.path / "hookyard.yaml").write_text("trust: off\ndata: null\n")

    def start(self):
        program = os.environ.get("HOOKYARD_PROGRAM", "hookyard")
        words = [program, "serve", "--config", "hookyard.yaml", "--home", self.path, "--workspace", self.workspace,
                 "--socket", self.socket, "--set", f"listen.lines={self.lines}", "--tcp", "127.0.0.1:0",
                 "--token-file", "token", "--exit-when-idle", "2m", "--log", "human"]
        log = self.path / "log"
        with log.open("w") as stderr:
            self._child = subprocess.Popen(words, cwd=self.path, stdout=subprocess.DEVNULL, stderr=stderr)
        while not (ready := re.search(r"listening on .* and (http:\S+):", log.read_text())):
            assert self._child.poll() is None, log.read_text()
            time.sleep(0.005)
        self.url = ready[1]

    def kill(self):
        self._child.kill()
        self._child.wait()

    def addresses(self):
        """The ways to it."""
        return {"lines": {"lines": self.lines}, "socket": {"socket": self.socket},
                "url": {"url": self.url, "token": self.token}}

    def remove(self):
        self.kill()
        self._directory.cleanup()


class Stub:
    """The stub of the conformance suite."""

    def __init__(self):
        self._directory = tempfile.TemporaryDirectory(prefix="hookyard-stub-")
        self.path = Path(self._directory.name)
        words = [sys.executable, CONFORMANCE / "stub.py", self.path]
        self._child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._child.stdout.readline() == b"ready\n"

    def end(self):
        self._child.communicate()
        self._directory.cleanup()
