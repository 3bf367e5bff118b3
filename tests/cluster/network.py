"""Network namespaces, one for each party of a cluster and a hub between them, so that the way from any party to any other
can be cut without a word to either end.

All of it is inside of this machine: no namespace has a way out but to this machine's own end, `HOST`.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

# Balancers, hosts and this program are in the machine's own namespace.
HOST = "host"


class Unavailable(Exception):
    """This machine or this user cannot do what a fault needs."""


def impossible() -> str | None:
    """What this machine lacks for it, as far as that can be seen."""
    if os.getuid() != 0:
        return "network namespaces need root"
    return None if shutil.which("ip") else "network namespaces need `ip`: apt-get install iproute2"


@dataclass(frozen=True)
class Network:
    # Below 1024: such a network is 64 addresses of 10.200.0.0/16, four for each party.
    number: int
    parties: tuple[str, ...]

    @classmethod
    def draw(cls, parties: tuple[str, ...]) -> Network:
        """One that no other cluster has at the time: its hub is there from now on."""
        while True:
            network = cls(random.SystemRandom().randrange(1024), (HOST, *parties))
            if not Path("/run/netns", network._hub).exists():
                _ip("netns", "add", network._hub)
                return network

    @property
    def _hub(self) -> str:
        return f"hookyard-{self.number}"

    def _address(self, offset: int) -> str:
        number = self.number * 64 + offset
        return f"10.200.{number // 256}.{number % 256}"

    def address(self, party: str) -> str:
        return self._address(4 * self.parties.index(party) + 2)

    def into(self, party: str) -> list[str]:
        """What a command begins with that runs as that party."""
        return [] if party == HOST else ["ip", "netns", "exec", f"{self._hub}-{party}"]

    def make(self) -> None:
        """Connects everybody to the hub."""
        # By itself, a router drops what it could not answer the way it came: the other direction of a cut.
        # And a new veth takes its filter from `default`.
        settings = "cd /proc/sys/net/ipv4; echo 1 >ip_forward; echo 0 >conf/all/rp_filter; echo 0 >conf/default/rp_filter"
        _ip("netns", "exec", self._hub, "sh", "-ec", settings)
        for number, party in enumerate(self.parties):
            self._connect(party, self._address(4 * number + 1))

    def _connect(self, party: str, gateway: str) -> None:
        link, there = f"hy{self.number}", self._at(party)
        if party != HOST:
            _ip("netns", "add", f"{self._hub}-{party}")
            _ip(*there, "link", "set", "lo", "up")
        _ip(*there, "link", "add", link, "type", "veth", "peer", "name", party, "netns", self._hub)
        _ip(*there, "address", "add", f"{self.address(party)}/30", "dev", link)
        _ip(*there, "link", "set", link, "up")
        _ip("-n", self._hub, "address", "add", f"{gateway}/30", "dev", party)
        _ip("-n", self._hub, "link", "set", party, "up")
        _ip(*there, "route", "add", f"{self._address(0)}/26", "via", gateway)

    def _at(self, party: str) -> tuple[str, ...]:
        return () if party == HOST else ("-n", f"{self._hub}-{party}")

    def cut(self, source: str, target: str) -> None:
        """Nothing that the source sends reaches the target; what the target sends does reach the source."""
        _ip("-n", self._hub, "rule", "add", *self._way(source, target))

    def join(self, source: str, target: str) -> None:
        _ip("-n", self._hub, "rule", "del", *self._way(source, target))

    def _way(self, source: str, target: str) -> tuple[str, ...]:
        return ("from", self.address(source), "to", self.address(target), "priority", "10", "type", "blackhole")

    def remove(self) -> None:
        """Also if only a part of it was made."""
        # The other links end with their namespaces.
        if Path("/sys/class/net", f"hy{self.number}").exists():
            _ip("link", "del", f"hy{self.number}")
        for name in (*(f"{self._hub}-{party}" for party in self.parties), self._hub):
            if Path("/run/netns", name).exists():
                _ip("netns", "del", name)


def _ip(*words: str) -> None:
    try:
        done = subprocess.run(["ip", *words], capture_output=True, text=True, timeout=30)
    except FileNotFoundError as error:
        raise Unavailable("partitions need `ip`: apt-get install iproute2") from error
    if done.returncode != 0:
        raise Unavailable(f"partitions need root and network namespaces: ip {' '.join(words)}: {done.stderr.strip()}")
