"""Nodes and a balancer in a directory of their own: started, looked at, and ended by what the directory says."""

from __future__ import annotations

import http.client
import json
import os
import random
import secrets
import shutil
import signal
import socket
import stat
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path

import balancer
from network import Namespace
from processes import Process, start, wait_for

SETTINGS = balancer.SHIPPED.parent / "hookyard.yaml"
HOOK = Path(__file__).resolve().parent / "hook.py"
WORKSPACE = "shop"
RECORD = "cluster.json"
# Shorter than that of config/cluster/hookyard.yaml, and longer than the balancer needs to notice.
LAMEDUCK = "2s"
HOOK_FILES = {
    "guard": "before_tool_dispatch",
    "recorder": "run_completed",
}


@dataclass(frozen=True)
class Shape:
    """What a cluster is made of."""

    program: str
    nodes: int = len(balancer.SERVERS)
    stick: bool = True
    retries: bool = True
    namespaces: bool = False
    # Where each node's `data` is a file system of its own, its size.
    data_size: str | None = None


@dataclass
class Node:
    name: str
    address: str
    directory: Path
    process: Process | None = None
    namespace: Namespace | None = None

    @property
    def running(self) -> Process:
        if self.process is None:
            raise RuntimeError(f"{self.name} was not started")
        return self.process

    @property
    def network(self) -> Namespace:
        if self.namespace is None:
            raise RuntimeError(f"{self.name} has no network of its own")
        return self.namespace

    def command(self, program: str, *more: str) -> list[str]:
        here = self.directory
        settings = {
            "node": self.name,
            "listen.socket": here / "s",
            "listen.control_socket": here / "c",
            "listen.tcp": self.address,
            "listen.token_file": here.parent / "token",
            "listen.lameduck": LAMEDUCK,
            "data": here / "data",
            "state_directory": here / "state",
            "trust": "off",
            "workspaces": f"{{{WORKSPACE}: {{root: {here / 'workspace'}}}}}",
        }
        into = ["ip", "netns", "exec", self.namespace.name] if self.namespace else []
        words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        return [*into, program, "serve", "--config", str(SETTINGS), "--home", str(here / "home"), *words, *more]

    def ready(self) -> bool:
        try:
            return get(self.address, "/readyz") == 200
        except OSError:
            return False

    def drain(self) -> None:
        """As `hookyard stop`, without waiting for the end."""
        connection = http.client.HTTPConnection("hookyard", timeout=10)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(str(self.directory / "c"))
        connection.request("POST", "/v1/drain")
        status = connection.getresponse().status
        if status not in (200, 202, 204):
            raise RuntimeError(f"POST /v1/drain on {self.name}: {status}")


class Cluster:
    def __init__(self, directory: Path, shape: Shape, address: str, nodes: list[Node]) -> None:
        self.directory, self.shape, self.address, self.nodes = directory, shape, address, nodes
        self.balancer: Process | None = None
        # Processes that were replaced or killed, until they have ended.
        self.former: list[Process] = []

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
        nodes = [cls._node(directory, name, shape) for name in balancer.SERVERS[: shape.nodes]]
        cluster = cls(directory, shape, f"127.0.0.1:{port or free_port()}", nodes)
        cluster.write()
        try:
            for node in nodes:
                if node.namespace:
                    node.namespace.make()
                if shape.data_size:
                    mount(node.directory / "data", shape.data_size)
        except BaseException:
            cluster.down()
            raise
        return cluster

    @staticmethod
    def _node(directory: Path, name: str, shape: Shape) -> Node:
        here = directory / name
        hooks = here / "workspace/.openharness/hooks"
        for made in (hooks, here / "home", here / "data", here / "state"):
            made.mkdir(mode=0o700, parents=True)
        for hook, event in HOOK_FILES.items():
            command = f"exec python3 {HOOK} {directory / 'asked.log'} {name}"
            handler = {"type": "command", "command": command, "mode": "worker", "timeout_seconds": 20}
            text = {"name": hook, "events": [event], "handler": handler}
            if event.startswith("before"):
                text |= {"on_error": "deny", "on_timeout": "deny"}
            (hooks / f"{hook}.yaml").write_text(json.dumps(text))
        namespace = None
        host = "127.0.0.1"
        if shape.namespaces:
            number = random.SystemRandom().randrange(64 * 256)
            namespace = Namespace(f"hookyard-{number}", number)
            host = namespace.inside
        return Node(name, f"{host}:{free_port()}", here, namespace=namespace)

    def up(self) -> None:
        for node in self.nodes:
            self.start_node(node)
        for node in self.nodes:
            self.wait_ready(node)
        self.start_balancer()

    def start_node(self, node: Node, *more: str) -> None:
        if node.process and node.process.alive():
            self.former.append(node.process)
        command = node.command(self.shape.program, *more)
        node.process = start(node.name, command, node.directory / "log", node.directory)
        self.write()

    def wait_ready(self, node: Node) -> None:
        def there() -> bool:
            if node.process is None or not node.process.alive():
                raise RuntimeError(f"{node.name} has ended; see {node.directory / 'log'}:\n{tail(node.directory / 'log')}")
            return node.ready()

        wait_for(there, f"{node.name} to be ready")

    def start_balancer(self) -> None:
        nodes = {node.name: node.address for node in self.nodes}
        text = balancer.configuration(self.address, nodes, self.shape.stick, self.shape.retries)
        (self.directory / "haproxy.cfg").write_text(text)
        command = [balancer.program(), "-db", "-f", str(self.directory / "haproxy.cfg")]
        log = self.directory / "haproxy.log"
        self.balancer = start("balancer", command, log, self.directory)
        self.write()
        wait_for(self._answers, f"the balancer; see {log}")

    def _answers(self) -> bool:
        if self.balancer is None or not self.balancer.alive():
            raise RuntimeError(f"the balancer has ended:\n{tail(self.directory / 'haproxy.log')}")
        try:
            return get(self.address, "/") == 404
        except OSError:
            return False

    def down(self) -> None:
        """Ends what it has started, and removes its directory."""
        everything = [*self.former, *(node.process for node in self.nodes), self.balancer]
        there = [process for process in everything if process and process.alive()]
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
        for node in self.nodes:
            if node.namespace:
                node.namespace.remove()
            if (node.directory / "data").is_mount():
                subprocess.run(["umount", str(node.directory / "data")], check=True)
        shutil.rmtree(self.directory)

    @property
    def running(self) -> Process:
        """The balancer."""
        if self.balancer is None:
            raise RuntimeError("the balancer was not started")
        return self.balancer

    def write(self) -> None:
        record = {
            "shape": asdict(self.shape),
            "address": self.address,
            "balancer": self.balancer and asdict(self.balancer),
            "former": [asdict(process) for process in self.former if process.alive()],
            "nodes": [
                {
                    "name": node.name,
                    "address": node.address,
                    "process": node.process and asdict(node.process),
                    "namespace": node.namespace and asdict(node.namespace),
                }
                for node in self.nodes
            ],
        }
        new = self.directory / f"{RECORD}.new"
        new.write_text(json.dumps(record, indent=1))
        new.rename(self.directory / RECORD)

    @classmethod
    def read(cls, directory: Path) -> Cluster:
        """A cluster that another command has started."""
        kept = directory.lstat()
        if kept.st_uid != os.getuid() or stat.S_IMODE(kept.st_mode) & 0o077 or not stat.S_ISDIR(kept.st_mode):
            raise PermissionError(f"{directory} is not a directory of this user alone")
        record = json.loads((directory / RECORD).read_text())
        cluster = cls(directory, Shape(**record["shape"]), record["address"], [])
        for kept in record["nodes"]:
            process = kept["process"] and Process(**kept["process"])
            namespace = kept["namespace"] and Namespace(**kept["namespace"])
            cluster.nodes.append(Node(kept["name"], kept["address"], directory / kept["name"], process, namespace))
        cluster.balancer = record["balancer"] and Process(**record["balancer"])
        cluster.former = [Process(**process) for process in record["former"]]
        return cluster

    def token(self) -> str:
        return (self.directory / "token").read_text()

    def asked(self) -> list[tuple[str, str]]:
        """The events that hooks were asked about, in order, each with the number of its delivery."""
        log = self.directory / "asked.log"
        lines = log.read_text().splitlines() if log.exists() else []
        return [(event, delivery) for event, delivery, _ in map(str.split, lines)]


def get(address: str, path: str) -> int:
    host, _, port = address.rpartition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=2)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except http.client.HTTPException as error:
        raise OSError(str(error)) from error
    finally:
        connection.close()


def free_port() -> int:
    """A port that no outgoing connection takes while a node is away."""
    while True:
        port = random.SystemRandom().randrange(10_000, 30_000)
        if is_free(port):
            return port


def is_free(port: int) -> bool:
    with socket.socket() as tried:
        # As a server does, which may take a port of connections that have just ended.
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def mount(directory: Path, size: str) -> None:
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", str(directory)], capture_output=True, text=True
    )
    if done.returncode != 0:
        raise PermissionError(f"a disk that can be filled needs root: {done.stderr.strip()}")


def tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-5:]) if log.exists() else ""
