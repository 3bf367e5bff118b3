"""Nodes, balancers and the servers of a store in a directory of their own: started, and ended by what the directory says."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import balancer
import nats
import record
import stores
from balancer import Balancer
from network import Network
from nodes import Node, alone, get
from ports import free_port, is_free
from processes import Process, wait_for
from stores import Store
from throttle import Group

RECORD = "cluster.json"
BALANCERS = ("balancer", "balancer-2")


@dataclass(frozen=True)
class Shape:
    """What a cluster is made of."""

    program: str
    nodes: int = len(balancer.SERVERS)
    balancers: int = 1
    stick: bool = True
    retries: bool = True
    # The server that three of keep the halts; None: nodes share none.
    store: str | None = None
    # What nodes do without the store: `answer` or `refuse`.
    unsure: str = "answer"
    # What they promise of halts: `watch` or `strict`.
    halts: str = "watch"
    # So many servers acknowledge what is not on their disks, which nodes have to refuse.
    lazy: int = 0
    # Each server is of no cluster, so that none can keep what three are to have.
    apart: bool = False
    # On so many servers each halt is to be.
    replicas: int = 3
    # Each party has a network of its own.
    namespaces: bool = False
    # Where each node's `data`, or each server's, is a file system of its own, its size.
    data_size: str | None = None
    store_size: str | None = None
    # The part of one processor that each node has; None: as much as there is.
    share: float | None = None


class Cluster:
    def __init__(self, directory: Path, shape: Shape) -> None:
        self.directory, self.shape = directory, shape
        self.nodes: list[Node] = []
        self.balancers: list[Balancer] = []
        self.stores: list[Store] = []
        self._network: Network | None = None
        self.groups: dict[str, Group] = {}
        # Processes that were replaced or killed, until they have ended.
        self.former: list[Process] = []

    @property
    def network(self) -> Network:
        if self._network is None:
            raise RuntimeError("the cluster has no network of its own")
        return self._network

    @property
    def address(self) -> str:
        return self.balancers[0].address

    @classmethod
    def make(cls, directory: Path, shape: Shape, port: int | None = None) -> Cluster:
        """Prepares everything and starts nothing."""
        balancer.program()
        if port and not is_free(port):
            # HAProxy would share it with another one.
            raise RuntimeError(f"port {port} is taken: --port has another one")
        directory.mkdir(mode=0o700, parents=True)
        (directory / "token").touch(mode=0o600)
        (directory / "token").write_text(secrets.token_urlsafe(24))
        cluster = cls(directory, shape)
        nodes = [f"n{number}" for number in range(1, shape.nodes + 1)]
        servers = nats.SERVERS if shape.store else ()
        if shape.namespaces:
            cluster._network = Network.draw((*nodes, *servers))
        cluster.nodes = [Node(name, cluster._place(name), directory / name) for name in nodes]
        cluster.stores = [Store(name, cluster._ports(name), directory / name) for name in servers]
        for name in BALANCERS[: shape.balancers]:
            given = port if name == BALANCERS[0] else None
            cluster.balancers.append(Balancer(name, f"127.0.0.1:{given or free_port()}", directory))
        cluster.write()
        try:
            cluster._prepare()
        except BaseException:
            cluster.down()
            raise
        return cluster

    def _place(self, party: str) -> str:
        host = self._network.address(party) if self._network else "127.0.0.1"
        return f"{host}:{free_port()}"

    def _ports(self, server: str) -> nats.Ports:
        return nats.Ports(self._place(server), self._place(server), self._place(server))

    def _prepare(self) -> None:
        if self._network:
            self._network.make()
        for node in self.nodes:
            node.prepare(self.directory / "asked.log")
            if self.shape.share:
                self.groups[node.name] = Group.make(f"hookyard-{os.getpid()}-{node.name}", self.shape.share)
            if self.shape.data_size:
                mount(node.directory / "data", self.shape.data_size)
        for store in self.stores:
            (store.directory / "data").mkdir(mode=0o700, parents=True)
            if self.shape.store_size:
                mount(store.directory / "data", self.shape.store_size)
        stores.configure(self.stores, self.shape.lazy, self.shape.apart)

    def up(self) -> None:
        self.start_stores()
        self.start_nodes()
        for each in self.balancers:
            self.start_balancer(each)

    def start_stores(self) -> None:
        for store in self.stores:
            self.start_store(store)
        for store in self.stores:
            self.wait_store(store)

    def start_nodes(self) -> None:
        for node in self.nodes:
            self.start_node(node)
        for node in self.nodes:
            self.wait_ready(node)

    def into(self, party: str) -> list[str]:
        group = self.groups.get(party)
        return (group.into() if group else []) + (self._network.into(party) if self._network else [])

    def start_store(self, store: Store) -> None:
        assert self.shape.store
        store.start(self.shape.store, self.into(store.name))
        self.write()

    def wait_store(self, store: Store) -> None:
        self._wait(store, store.ready, store.log)

    def start_node(self, node: Node, *more: str) -> None:
        if node.process and node.process.alive():
            self.former.append(node.process)
        node.start(self.shape.program, self.into(node.name), self._keeping(), more)
        self.write()

    def check_node(self, node: Node) -> subprocess.CompletedProcess[str]:
        return node.checked(self.shape.program, self._keeping())

    def _keeping(self) -> dict[str, str]:
        """The settings of nodes for what they share."""
        shape = self.shape
        return stores.settings(self.stores, shape.unsure, shape.halts, shape.replicas) if self.stores else alone()

    def wait_ready(self, node: Node) -> None:
        self._wait(node, node.ready, node.log)

    def start_balancer(self, each: Balancer) -> None:
        each.start({node.name: node.address for node in self.nodes}, self.shape.stick, self.shape.retries)
        self.write()
        self._wait(each, lambda: answers(each.address), each.log)

    @staticmethod
    def _wait(party: Node | Store | Balancer, condition: Callable[[], bool], log: Path) -> None:
        def there() -> bool:
            if not party.running.alive():
                raise RuntimeError(f"{party.name} has ended; see {log}:\n{tail(log)}")
            return condition()

        try:
            wait_for(there, f"{party.name} to be ready")
        except TimeoutError as late:
            # The log may be removed with its cluster.
            raise TimeoutError(f"{late}; {log} ends with:\n{tail(log)}") from late

    def wait_leader(self, seconds: float = 60) -> Store:
        """The server that leads the stream of halts."""
        if not self.stores:
            raise RuntimeError("nodes share no store: this fault is for --store nats")
        wait_for(lambda: stores.leader(self.stores) is not None, f"a leader of the stream {stores.STREAM}", seconds)
        found = stores.leader(self.stores)
        # It may have lost its lead since, which is for the next one who asks.
        return found or self.wait_leader(seconds)

    def down(self) -> None:
        """Ends what it has started, and removes its directory."""
        for group in self.groups.values():
            group.lift()
        first = [*self.former, *(each.process for each in (*self.nodes, *self.balancers))]
        # A node that ends may still have something for the store.
        for processes in (first, [store.process for store in self.stores]):
            end([process for process in processes if process and process.alive()])
        for group in self.groups.values():
            group.remove()
        if self._network:
            self._network.remove()
        for party in (*self.nodes, *self.stores):
            if (party.directory / "data").is_mount():
                subprocess.run(["umount", str(party.directory / "data")], check=True)
        shutil.rmtree(self.directory)

    def write(self) -> None:
        kept = {
            "shape": asdict(self.shape),
            "network": self._network and asdict(self._network),
            "former": [asdict(process) for process in self.former if process.alive()],
            "nodes": [_kept(node, address=node.address) for node in self.nodes],
            "balancers": [_kept(each, address=each.address) for each in self.balancers],
            "stores": [_kept(store, ports=asdict(store.ports)) for store in self.stores],
        }
        record.write(self.directory / RECORD, kept)

    @classmethod
    def read(cls, directory: Path) -> Cluster:
        """A cluster that another command has started."""
        kept = record.read(directory / RECORD)
        cluster = cls(directory, Shape(**kept["shape"]))
        if network := kept["network"]:
            cluster._network = Network(network["number"], tuple(network["parties"]))
        for one in kept["nodes"]:
            cluster.nodes.append(Node(one["name"], one["address"], directory / one["name"], _process(one)))
        for one in kept["balancers"]:
            cluster.balancers.append(Balancer(one["name"], one["address"], directory, _process(one)))
        for one in kept["stores"]:
            ports = nats.Ports(**one["ports"])
            cluster.stores.append(Store(one["name"], ports, directory / one["name"], _process(one)))
        cluster.former = [Process(**process) for process in kept["former"]]
        return cluster

    def token(self) -> str:
        return (self.directory / "token").read_text()

    def asked(self) -> list[tuple[str, str, str]]:
        """The events that hooks were asked about, in order, each with the number of its delivery and the node."""
        log = self.directory / "asked.log"
        lines = log.read_text().splitlines() if log.exists() else []
        return [(event, delivery, node) for event, delivery, node in map(str.split, lines)]


def _kept(party: Node | Store | Balancer, **more: object) -> dict:
    return {"name": party.name, "process": party.process and asdict(party.process), **more}


def _process(kept: dict) -> Process | None:
    return kept["process"] and Process(**kept["process"])


def end(there: list[Process]) -> None:
    for process in there:
        process.send(signal.SIGCONT)
        process.send(signal.SIGTERM)
        # The second one ends a node without its lameduck.
        process.send(signal.SIGTERM)
    for process in there:
        try:
            process.wait(20)
        except TimeoutError:
            process.send(signal.SIGKILL)
            process.wait()


def answers(address: str) -> bool:
    try:
        return get(address, "/") == 404
    except OSError:
        return False


def mount(directory: Path, size: str) -> None:
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", str(directory)], capture_output=True, text=True
    )
    if done.returncode != 0:
        raise PermissionError(f"a disk that can be filled needs root: {done.stderr.strip()}")


def tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-5:]) if log.exists() else ""
