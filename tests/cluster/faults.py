"""What goes wrong, by name. Each fault begins when it is called, and is over when it returns."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path

from cluster import Cluster, Node, Shape

AWAY, PAUSED, FULL, WITHOUT_BALANCER = 3.0, 6.0, 4.0, 1.0


async def none(cluster: Cluster, node: Node) -> None:
    """Nothing goes wrong."""


async def kill(cluster: Cluster, node: Node) -> None:
    """kill -9 of a node, and its restart 3 s later."""
    node.running.send(signal.SIGKILL)
    await gone(node)
    await asyncio.sleep(AWAY)
    await begin_again(cluster, node)


async def pause(cluster: Cluster, node: Node) -> None:
    """SIGSTOP of a node, and SIGCONT 6 s later; its hooks go on."""
    node.running.send(signal.SIGSTOP)
    await asyncio.sleep(PAUSED)
    node.running.send(signal.SIGCONT)


async def restart(cluster: Cluster, node: Node) -> None:
    """SIGTERM to a node with a lameduck of 2 s, and its start when it has ended."""
    node.running.send(signal.SIGTERM)
    await gone(node)
    await begin_again(cluster, node)


async def drain(cluster: Cluster, node: Node) -> None:
    """POST /v1/drain to a node, as before maintenance; its start 3 s after it has ended."""
    await asyncio.to_thread(node.drain)
    await gone(node)
    await asyncio.sleep(AWAY)
    await begin_again(cluster, node)


async def takeover(cluster: Cluster, node: Node) -> None:
    """`hookyard serve --replace` beside a node."""
    old = node.running
    cluster.start_node(node, "--replace")
    await asyncio.to_thread(old.wait)
    await asyncio.to_thread(cluster.wait_ready, node)


async def balancer(cluster: Cluster, node: Node) -> None:
    """kill -9 of the balancer, and its restart 1 s later: its stick table is lost."""
    cluster.running.send(signal.SIGKILL)
    await asyncio.to_thread(cluster.running.wait)
    await asyncio.sleep(WITHOUT_BALANCER)
    await asyncio.to_thread(cluster.start_balancer)


async def partition(cluster: Cluster, node: Node) -> None:
    """For 6 s, nothing that a node sends reaches the balancer, without a word to either."""
    node.network.cut()
    await asyncio.sleep(PAUSED)
    node.network.join()


async def full_disk(cluster: Cluster, node: Node) -> None:
    """For 4 s, the disk with the `data` of a node is full."""
    filler = node.directory / "data/filler"
    try:
        fill(filler)
        await asyncio.sleep(FULL)
    finally:
        filler.unlink(missing_ok=True)


def fill(path: Path) -> None:
    with open(path, "wb", buffering=0) as file:
        for size in (1 << 20, 4096, 1):
            try:
                while True:
                    file.write(b"\0" * size)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise


async def gone(node: Node) -> None:
    await asyncio.to_thread(node.running.wait)


async def begin_again(cluster: Cluster, node: Node) -> None:
    cluster.start_node(node)
    await asyncio.to_thread(cluster.wait_ready, node)


@dataclass(frozen=True)
class Fault:
    happens: Callable[[Cluster, Node], Awaitable[None]]
    namespaces: bool = False
    data_size: str | None = None

    @property
    def words(self) -> str:
        return " ".join((self.happens.__doc__ or "").split())

    def shape(self, shape: Shape) -> Shape:
        return replace(shape, namespaces=self.namespaces, data_size=self.data_size)

    def impossible(self) -> str | None:
        """What this machine lacks for it."""
        if (self.namespaces or self.data_size) and os.getuid() != 0:
            return "needs root"
        return None


FAULTS: dict[str, Fault] = {
    "none": Fault(none),
    "kill": Fault(kill),
    "pause": Fault(pause),
    "restart": Fault(restart),
    "drain": Fault(drain),
    "replace": Fault(takeover),
    "balancer": Fault(balancer),
    "partition": Fault(partition, namespaces=True),
    "full-disk": Fault(full_disk, data_size="8m"),
}
