"""What goes wrong, by name. Each fault begins when it is called, and is over when it returns."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path

import network
from cluster import Cluster, Shape
from network import HOST
from nodes import Node
from stores import Store

AWAY, PAUSED, FULL, WITHOUT_BALANCER = 3.0, 6.0, 4.0, 1.0
# How long a server of the store may take to lead in place of another one, and then stays without it.
ELECTION, AFTER_ELECTION = 30.0, 1.0
# How long all servers of the store are away.
WITHOUT_STORE = 3.0


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
    first = cluster.balancers[0]
    first.running.send(signal.SIGKILL)
    await asyncio.to_thread(first.running.wait)
    await asyncio.sleep(WITHOUT_BALANCER)
    await asyncio.to_thread(cluster.start_balancer, first)


async def two_balancers(cluster: Cluster, node: Node) -> None:
    """For 6 s, one of two balancers takes a node for gone, and the other one does not; hosts use both in turn."""
    second = cluster.balancers[1]
    second.tell(f"set server nodes/{node.name} state maint")
    await asyncio.sleep(PAUSED)
    second.tell(f"set server nodes/{node.name} state ready")


async def partition(cluster: Cluster, node: Node) -> None:
    """For 6 s, nothing that a node sends reaches the balancer, without a word to either."""
    await cut_off(cluster, [(node.name, HOST)])


async def partition_in(cluster: Cluster, node: Node) -> None:
    """For 6 s, nothing that the balancer sends reaches a node."""
    await cut_off(cluster, [(HOST, node.name)])


async def partition_both(cluster: Cluster, node: Node) -> None:
    """For 6 s, balancer and node hear nothing of each other."""
    await cut_off(cluster, [(HOST, node.name), (node.name, HOST)])


async def store_out(cluster: Cluster, node: Node) -> None:
    """For 6 s, nothing that a node sends reaches the store; events go on."""
    await cut_off(cluster, [(node.name, store.name) for store in cluster.stores])


async def store_in(cluster: Cluster, node: Node) -> None:
    """For 6 s, nothing that the store sends reaches a node; events go on."""
    await cut_off(cluster, [(store.name, node.name) for store in cluster.stores])


async def store_both(cluster: Cluster, node: Node) -> None:
    """For 6 s, node and store hear nothing of each other; events go on."""
    await cut_off(cluster, both_ways(node.name, cluster.stores))


async def store_apart(cluster: Cluster, node: Node) -> None:
    """For 12 s, the leader of the store and the other servers hear nothing of each other; nodes reach all of them."""
    leader = await asyncio.to_thread(cluster.wait_leader)
    others = [store for store in cluster.stores if store is not leader]
    await cut_off(cluster, both_ways(leader.name, others), 2 * PAUSED)


def both_ways(party: str, stores: list[Store]) -> list[tuple[str, str]]:
    return [way for store in stores for way in ((party, store.name), (store.name, party))]


async def cut_off(cluster: Cluster, ways: list[tuple[str, str]], seconds: float = PAUSED) -> None:
    for source, target in ways:
        cluster.network.cut(source, target)
    await asyncio.sleep(seconds)
    for source, target in ways:
        cluster.network.join(source, target)


async def store_leader(cluster: Cluster, node: Node) -> None:
    """kill -9 of the server that leads the store, and its restart 1 s after another one leads."""
    leader = await asyncio.to_thread(cluster.wait_leader)
    await kill_store(leader)
    await asyncio.to_thread(cluster.wait_leader, ELECTION)
    await asyncio.sleep(AFTER_ELECTION)
    await store_back(cluster, leader)


async def store_follower(cluster: Cluster, node: Node) -> None:
    """kill -9 of a server that does not lead the store, and its restart 3 s later."""
    leader = await asyncio.to_thread(cluster.wait_leader)
    follower = next(store for store in cluster.stores if store is not leader)
    await kill_store(follower)
    await asyncio.sleep(AWAY)
    await store_back(cluster, follower)


async def store_all(cluster: Cluster, node: Node) -> None:
    """kill -9 of all servers of the store, and their restart 3 s later."""
    await asyncio.to_thread(cluster.wait_leader)
    for store in cluster.stores:
        await kill_store(store)
    await asyncio.sleep(WITHOUT_STORE)
    await store_back(cluster, *cluster.stores)


async def store_pause(cluster: Cluster, node: Node) -> None:
    """SIGSTOP of the server that leads the store, and SIGCONT 12 s later."""
    leader = await asyncio.to_thread(cluster.wait_leader)
    leader.running.send(signal.SIGSTOP)
    await asyncio.sleep(2 * PAUSED)
    leader.running.send(signal.SIGCONT)


async def store_full(cluster: Cluster, node: Node) -> None:
    """For 4 s, the disk of the server that leads the store is full; then it is started again."""
    leader = await asyncio.to_thread(cluster.wait_leader)
    await full(leader.directory)
    leader.running.send(signal.SIGTERM)
    await asyncio.to_thread(leader.running.wait)
    await store_back(cluster, leader)


async def kill_with_leader(cluster: Cluster, node: Node) -> None:
    """kill -9 of a node and of the server that leads the store at once; both come back when another one leads."""
    leader = await asyncio.to_thread(cluster.wait_leader)
    node.running.send(signal.SIGKILL)
    await kill_store(leader)
    await gone(node)
    await asyncio.to_thread(cluster.wait_leader, ELECTION)
    await store_back(cluster, leader)
    await begin_again(cluster, node)


async def kill_cut_off(cluster: Cluster, node: Node) -> None:
    """For 3 s, node and store hear nothing of each other; then the node is killed with what it knows, and back 3 s later."""
    ways = both_ways(node.name, cluster.stores)
    for source, target in ways:
        cluster.network.cut(source, target)
    await asyncio.sleep(AWAY)
    node.running.send(signal.SIGKILL)
    await gone(node)
    for source, target in ways:
        cluster.network.join(source, target)
    await asyncio.sleep(AWAY)
    await begin_again(cluster, node)


async def start_cut_off(cluster: Cluster, node: Node) -> None:
    """kill -9 of a node, and its restart at once; for 6 s more, it and the store hear nothing of each other."""
    node.running.send(signal.SIGKILL)
    await gone(node)
    ways = both_ways(node.name, cluster.stores)
    for source, target in ways:
        cluster.network.cut(source, target)
    cluster.start_node(node)
    await asyncio.sleep(PAUSED)
    for source, target in ways:
        cluster.network.join(source, target)
    # It may have waited for the store, or ended.
    if not node.running.alive():
        cluster.start_node(node)
    await asyncio.to_thread(cluster.wait_ready, node)


async def new_disks(cluster: Cluster, node: Node) -> None:
    """kill -9 of all nodes, which start at once without anything in their `data`."""
    for each in cluster.nodes:
        each.running.send(signal.SIGKILL)
    for each in cluster.nodes:
        await gone(each)
        shutil.rmtree(each.directory / "data")
        (each.directory / "data").mkdir(mode=0o700)
        cluster.start_node(each)
    for each in cluster.nodes:
        await asyncio.to_thread(cluster.wait_ready, each)


async def stale(cluster: Cluster, node: Node) -> None:
    """For 6 s, one of two balancers takes a node for gone, and the node and the store hear nothing of each other: what other nodes
    halt meanwhile cannot be known to it."""
    second, ways = cluster.balancers[1], both_ways(node.name, cluster.stores)
    second.tell(f"set server nodes/{node.name} state maint")
    await cut_off(cluster, ways)
    second.tell(f"set server nodes/{node.name} state ready")


async def kill_store(store: Store) -> None:
    store.running.send(signal.SIGKILL)
    await asyncio.to_thread(store.running.wait)


async def store_back(cluster: Cluster, *those: Store) -> None:
    for store in those:
        cluster.start_store(store)
    for store in those:
        await asyncio.to_thread(cluster.wait_store, store)


async def full_disk(cluster: Cluster, node: Node) -> None:
    """For 4 s, the disk with the `data` of a node is full."""
    await full(node.directory)


async def full(directory: Path) -> None:
    filler = directory / "data/filler"
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
    store_size: str | None = None
    # It is one of the store, so there must be one.
    store: bool = False
    balancers: int = 1
    # Halts of its time are known to a node alone that dies or that others take for gone: they hold only if nodes without the
    # store refuse to answer.
    loses: bool = False
    # A node answers without the store until it notices, which takes 2 s (`cluster.stale_after`): so long, no setting helps.
    unnoticed: bool = False
    # It takes accepted lifecycle events with it.
    loses_lifecycle: bool = False
    # So much longer than others is it, so the load is as well.
    longer: float = 0.0

    @property
    def words(self) -> str:
        return " ".join((self.happens.__doc__ or "").split())

    def keeps_halts(self, shape: Shape) -> bool:
        """Whether no halt may be forgotten."""
        if shape.store is not None and shape.halts == "strict":
            return True
        known = shape.unsure == "refuse" or not self.loses
        return self.happens is none or shape.store is not None and known and not self.unnoticed

    def shape(self, shape: Shape) -> Shape:
        return replace(
            shape, namespaces=self.namespaces, data_size=self.data_size, store_size=self.store_size, balancers=self.balancers
        )

    def impossible(self) -> str | None:
        """What this machine lacks for it."""
        if self.namespaces and (reason := network.impossible()):
            return reason
        if (self.data_size or self.store_size) and os.getuid() != 0:
            return "a disk that can be filled needs root"
        return None


FAULTS: dict[str, Fault] = {
    "none": Fault(none),
    "kill": Fault(kill),
    "pause": Fault(pause),
    "restart": Fault(restart),
    "drain": Fault(drain),
    "replace": Fault(takeover),
    "balancer": Fault(balancer),
    "two-balancers": Fault(two_balancers, balancers=2),
    "partition": Fault(partition, namespaces=True),
    "partition-in": Fault(partition_in, namespaces=True),
    "partition-both": Fault(partition_both, namespaces=True),
    "full-disk": Fault(full_disk, data_size="8m"),
    "store-leader": Fault(store_leader, store=True, longer=6),
    "store-follower": Fault(store_follower, store=True),
    "store-all": Fault(store_all, store=True, longer=10),
    "store-pause": Fault(store_pause, store=True, longer=6),
    "store-out": Fault(store_out, store=True, namespaces=True),
    "store-in": Fault(store_in, store=True, namespaces=True),
    "store-both": Fault(store_both, store=True, namespaces=True),
    "store-apart": Fault(store_apart, store=True, namespaces=True, longer=6),
    "store-full-disk": Fault(store_full, store=True, store_size="48m", longer=6),
    "kill-with-leader": Fault(kill_with_leader, store=True, longer=6),
    "stale": Fault(stale, store=True, namespaces=True, balancers=2, unnoticed=True),
    "start-cut-off": Fault(start_cut_off, store=True, namespaces=True),
    "new-disks": Fault(new_disks, store=True, loses_lifecycle=True),
    "kill-cut-off": Fault(kill_cut_off, store=True, namespaces=True, longer=6, loses=True),
}
