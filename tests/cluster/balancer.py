"""The balancers: config/cluster/haproxy.cfg as it is shipped, with the addresses of a cluster under test."""

from __future__ import annotations

import shutil
import socket
from dataclasses import dataclass
from pathlib import Path

from processes import Process, Startable, start

SHIPPED = Path(__file__).resolve().parents[2] / "config/cluster/haproxy.cfg"
# The servers in it. There may be fewer, or more.
SERVERS = ("n1", "n2", "n3")
# What is left out to see what it is good for.
STICK = ("    stick-table", "    stick on")
RETRIES = ("    option redispatch", "    retry-on")


class Missing(Exception):
    """A program is not on this machine."""


@dataclass
class Balancer(Startable):
    name: str
    address: str
    directory: Path
    process: Process | None = None

    @property
    def log(self) -> Path:
        return self.directory / f"{self.name}.log"

    @property
    def _admin(self) -> Path:
        return self.directory / f"{self.name}.sock"

    def start(self, nodes: dict[str, str], stick: bool, retries: bool) -> None:
        text = configuration(self.address, nodes, stick, retries)
        # For `tell`, and only here: whoever may write to it can send events anywhere.
        text = replaced(text, "\nglobal\n", f"\nglobal\n    stats socket {self._admin} mode 600 level admin\n")
        settings = self.directory / f"{self.name}.cfg"
        settings.write_text(text)
        self.process = start(self.name, [program(), "-db", "-f", str(settings)], self.log, self.directory)

    def tell(self, words: str) -> None:
        """Such as `set server nodes/n1 state maint`."""
        with socket.socket(socket.AF_UNIX) as admin:
            admin.settimeout(5)
            admin.connect(str(self._admin))
            admin.sendall(f"{words}\n".encode())
            said = admin.recv(4096).decode().strip()
        if said:
            raise RuntimeError(f"{self.name}: {words}: {said}")


def program() -> str:
    found = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin:/usr/local/sbin")
    if found is None:
        raise Missing("haproxy is not installed: `apt-get install haproxy` on Debian and Ubuntu, 2.6 or later")
    return found


def configuration(address: str, nodes: dict[str, str], stick: bool, retries: bool) -> str:
    text = SHIPPED.read_text()
    text = replaced(text, "bind 127.0.0.1:8780", f"bind {address}")
    for name in SERVERS:
        text = replaced(text, f"    server {name} 10.0.0.1{name[1:]}:8787 ", f"    server {name} {nodes.get(name)} ")
        if name not in nodes:
            text = _without(text, (f"    server {name} ",))
    # The servers are the end of the file.
    text += "".join(f"    server {name} {address} tcp-ut 3s\n" for name, address in nodes.items() if name not in SERVERS)
    if not stick:
        text = _without(text, STICK)
    if not retries:
        text = replaced(_without(text, RETRIES), "    retries 3\n", "    retries 0\n")
    return text


def replaced(text: str, old: str, new: str, of: Path = SHIPPED) -> str:
    if text.count(old) != 1:
        raise ValueError(f"{of} must have `{old.strip()}` once")
    return text.replace(old, new)


def _without(text: str, beginnings: tuple[str, ...]) -> str:
    for beginning in beginnings:
        if beginning not in text:
            raise ValueError(f"{SHIPPED} has no line that begins with `{beginning.strip()}`")
    return "".join(line for line in text.splitlines(True) if not line.startswith(beginnings))
