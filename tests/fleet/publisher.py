"""Who makes guards and publishes them: a key, versions of a bundle, and the way to the server."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from fleet import BUNDLE, Fleet

NAME = "acme/guards"
GUARD = """\
name: {name}
events: [before_tool_dispatch]
matcher: ^Bash$
handler: {{type: command, command: ./scripts/{name}.sh}}
on_error: deny
on_timeout: deny
"""
SCRIPT = """\
#!/bin/sh
if grep -q '{pattern}'; then
  echo '{reason}' >&2
  exit 2
fi
"""
# What each version adds: the name of a guard, what it looks for, what it says, and a command that it blocks.
GUARDS = (
    ("no-prod", r"prod\.example\.com", "production is off limits", "ssh prod.example.com"),
    ("no-force", "git push.*--force", "force pushes are not allowed", "git push --force"),
    ("no-wipe", "mkfs", "no file systems are made here", "mkfs.ext4 /dev/sda1"),
)


class Publisher:
    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.directory = fleet.directory / "publisher"

    def run(self, *words: str) -> str:
        environment = {"PATH": os.environ.get("PATH", ""), "SSL_CERT_FILE": str(self.fleet.plane / "ca.pem")}
        done = subprocess.run(
            [self.fleet.program, "bundle", *words], cwd=self.directory, env=environment, capture_output=True, text=True, timeout=60
        )
        if done.returncode != 0:
            raise RuntimeError(f"hookyard bundle {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout.strip()

    def make_key(self, name: str = "guards") -> str:
        """Returns the public key."""
        self.directory.mkdir(mode=0o700, exist_ok=True)
        public = self.directory / f"{name}.pub"
        if not public.exists():
            public.write_text(self.run("keygen", f"{name}.key"))
        return public.read_text().strip()

    @property
    def statement(self) -> Path:
        """What edges ask for."""
        return self.fleet.plane / "bundles" / BUNDLE

    def last_version(self) -> int:
        """The version that is published; 0 if none is."""
        if not self.statement.exists():
            return 0
        lines = (line.split(" ") for line in self.statement.read_text().splitlines())
        return next(int(words[1]) for words in lines if words[0] == "version")

    def publish(self) -> int:
        """Publishes the next version, which has the guards up to that number."""
        version = self.last_version() + 1
        guards = GUARDS[:version]
        for name, pattern, reason, _ in guards:
            self._write(f"guards/core/.openharness/hooks/{name}.yaml", GUARD.format(name=name), 0o644)
            self._write(f"guards/core/scripts/{name}.sh", SCRIPT.format(pattern=pattern, reason=reason), 0o755)
        archive = f"guards-{version}.tar.gz"
        required = [word for name, *_ in guards for word in ("--require", name)]
        self.run("build", "guards", "--name", NAME, "--version", str(version), "--expires", "90d", *required, "--output", archive)
        self.run("sign", archive, "--key", "guards.key")
        self.run("push", archive, self.fleet.url, "--token-file", str(self.fleet.plane / "publish-token"))
        return version

    def _write(self, name: str, text: str, mode: int) -> None:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
