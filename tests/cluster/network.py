"""Network namespaces, one for each node, so that the way between the balancer and a node can be cut without a word."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path


class Unavailable(Exception):
    """This machine or this user cannot do what a fault needs."""


@dataclass(frozen=True)
class Namespace:
    name: str
    # A number below 64 * 256 that no other namespace of this program has at the time.
    number: int

    @property
    def _network(self) -> str:
        return f"10.{200 + self.number // 16384}.{self.number // 64 % 256}.{self.number % 64 * 4}"

    def _host(self, offset: int) -> str:
        base, last = self._network.rsplit(".", 1)
        return f"{base}.{int(last) + offset}"

    @property
    def outside(self) -> str:
        return self._host(1)

    @property
    def inside(self) -> str:
        return self._host(2)

    def make(self) -> None:
        here, there = f"hy{self.number}a", f"hy{self.number}b"
        _ip("netns", "add", self.name)
        _ip("link", "add", here, "type", "veth", "peer", "name", there, "netns", self.name)
        _ip("address", "add", f"{self.outside}/30", "dev", here)
        _ip("link", "set", here, "up")
        _ip("-n", self.name, "address", "add", f"{self.inside}/30", "dev", there)
        _ip("-n", self.name, "link", "set", there, "up")
        _ip("-n", self.name, "link", "set", "lo", "up")

    def cut(self) -> None:
        """Packets still come, and no answer leaves."""
        _ip("-n", self.name, "route", "add", "blackhole", f"{self.outside}/32")

    def join(self) -> None:
        _ip("-n", self.name, "route", "del", "blackhole", f"{self.outside}/32")

    def remove(self) -> None:
        """Also if only a part of it was made."""
        if Path("/run/netns", self.name).exists():
            _ip("netns", "del", self.name)


def _ip(*words: str) -> None:
    try:
        done = subprocess.run(["ip", *words], capture_output=True, text=True, timeout=30)
    except FileNotFoundError as error:
        raise Unavailable("partitions need `ip`: apt-get install iproute2") from error
    if done.returncode != 0:
        raise Unavailable(f"partitions need root and network namespaces: ip {' '.join(words)}: {done.stderr.strip()}")
