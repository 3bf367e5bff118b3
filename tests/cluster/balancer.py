"""config/cluster/haproxy.cfg as it is shipped, with the addresses of a cluster under test."""

from __future__ import annotations

import shutil
from pathlib import Path

SHIPPED = Path(__file__).resolve().parents[2] / "config/cluster/haproxy.cfg"
SERVERS = ("n1", "n2", "n3")
# What is left out to see what it is good for.
STICK = ("    stick-table", "    stick on")
RETRIES = ("    option redispatch", "    retry-on")


class Missing(Exception):
    """A program is not on this machine."""


def program() -> str:
    found = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin:/usr/local/sbin")
    if found is None:
        raise Missing("haproxy is not installed: `apt-get install haproxy` on Debian and Ubuntu, 2.6 or later")
    return found


def configuration(address: str, nodes: dict[str, str], stick: bool, retries: bool) -> str:
    text = SHIPPED.read_text()
    text = _replaced(text, "bind 127.0.0.1:8780", f"bind {address}")
    for name in SERVERS:
        text = _replaced(text, f"    server {name} 10.0.0.1{name[1:]}:8787 ", f"    server {name} {nodes.get(name)} ")
        if name not in nodes:
            text = _without(text, (f"    server {name} ",))
    if not stick:
        text = _without(text, STICK)
    if not retries:
        text = _replaced(_without(text, RETRIES), "    retries 3\n", "    retries 0\n")
    return text


def _replaced(text: str, old: str, new: str) -> str:
    if text.count(old) != 1:
        raise ValueError(f"{SHIPPED} must have `{old.strip()}` once")
    return text.replace(old, new)


def _without(text: str, beginnings: tuple[str, ...]) -> str:
    for beginning in beginnings:
        if beginning not in text:
            raise ValueError(f"{SHIPPED} has no line that begins with `{beginning.strip()}`")
    return "".join(line for line in text.splitlines(True) if not line.startswith(beginnings))
