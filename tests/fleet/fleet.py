"""A control plane and edges in a directory of their own: started, looked at, and ended by what the directory says."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import secrets
import shutil
import signal
import socket
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import certificates
import record
import server
from ports import free_port, is_free
from processes import Process, start, wait_for
from programs import find

HERE = Path(__file__).resolve().parent
EDGES = ("edge-1", "edge-2", "edge-3")
WORKSPACE = "shop"
RECORD = "fleet.json"
BUNDLE = "guards.bundle"
# An edge has two sockets in here, whose paths the system limits to 107 bytes.
LONGEST_PATH = 80
# So that a fleet of minutes shows what one of weeks does; see config/fleet/edge.yaml.
FAST = {"bundle.poll": "500ms", "ship.max_age": "200ms", "ship.state_every": "1s"}
STATE_EVERY = 1.0
# How long a daemon may take for an answer.
TIMEOUT = 20


@dataclass
class Edge:
    name: str
    directory: Path
    # The port of its network, and what runs.
    port: int
    link: Process | None = None
    daemon: Process | None = None

    @property
    def log(self) -> Path:
        return self.directory / "log"


class Fleet:
    def __init__(self, directory: Path, program: str, port: int, edges: list[Edge]) -> None:
        self.directory, self.program, self.port, self.edges = directory, program, port, edges
        self.nginx: Process | None = None
        self.sink: Process | None = None

    @property
    def plane(self) -> Path:
        return self.directory / "plane"

    @property
    def store(self) -> Path:
        return self.plane / "lines"

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}/{BUNDLE}"

    @classmethod
    def make(cls, directory: Path, program: str, port: int | None = None) -> Fleet:
        """Prepares everything and starts nothing."""
        for name, package in (("nginx", "nginx-light"), ("openssl", "openssl")):
            find(name, package, name)
        if len(str(directory)) > LONGEST_PATH:
            raise RuntimeError(f"{directory} is too long for the paths of sockets: --directory has another one")
        if directory.exists():
            raise FileExistsError
        if port and not is_free(port):
            raise RuntimeError(f"port {port} is taken: --port has another one")
        directory.mkdir(mode=0o700, parents=True)
        try:
            edges = [Edge(name, directory / name, free_port()) for name in EDGES]
            fleet = cls(directory, program, port or free_port(), edges)
            fleet.write()
            fleet._prepare_plane()
            for edge in edges:
                fleet._prepare_edge(edge)
        except BaseException:
            remove(directory)
            raise
        return fleet

    def _prepare_plane(self) -> None:
        self.plane.mkdir()
        certificates.make(self.plane)
        publisher = self.plane / "publish-token"
        private(publisher, secrets.token_hex(32))
        server.write(self.plane, self.port, publisher.read_text())
        (self.plane / "edges.tokens").touch(mode=0o600)

    def _prepare_edge(self, edge: Edge) -> None:
        for made in ("workspace", "home", "data", "state"):
            (edge.directory / made).mkdir(mode=0o700, parents=True)
        token = secrets.token_hex(32)
        private(edge.directory / "ship-token", token)
        with (self.plane / "edges.tokens").open("a") as tokens:
            tokens.write(f"{edge.name} {hashlib.sha256(token.encode()).hexdigest()}\n")

    def up(self, key: str) -> None:
        self.start_plane()
        for edge in self.edges:
            self.join(edge)
            self.start(edge, key)
        for edge in self.edges:
            self.wait_ready(edge)

    def start_plane(self) -> None:
        self.start_sink()
        here = self.plane
        nginx = [find("nginx", "nginx-light", "nginx"), "-p", str(here), "-c", "nginx.conf", "-e", "stderr"]
        self.nginx = start("nginx", nginx, here / "nginx.log", here)
        self.write()
        wait_for(lambda: alive(self.nginx, here / "nginx.log") and is_open(self.port), "nginx")

    def start_sink(self) -> None:
        here = self.plane
        socket_path = here / "sink/socket"
        socket_path.unlink(missing_ok=True)
        sink = [
            sys.executable, str(server.SHIPPED / "sink.py"), "--store", str(self.store), "--tokens", str(here / "edges.tokens"),
            "--socket", str(socket_path), "--least-free", str(64 << 20),
        ]
        self.sink = start("sink", sink, here / "sink.log", here)
        self.write()
        wait_for(lambda: alive(self.sink, here / "sink.log") and socket_path.exists(), "the sink")

    def kill_sink(self) -> None:
        if self.sink:
            self.sink.send(signal.SIGKILL)
            self.sink.wait()

    def join(self, edge: Edge) -> None:
        """Gives an edge its network."""
        command = [sys.executable, str(HERE / "link.py"), str(edge.port), str(self.port)]
        edge.link = start(f"network of {edge.name}", command, edge.directory / "link.log", edge.directory)
        self.write()
        wait_for(lambda: alive(edge.link, edge.directory / "link.log") and is_open(edge.port), f"the network of {edge.name}")

    def cut(self, edge: Edge) -> None:
        if edge.link:
            edge.link.send(signal.SIGKILL)
            edge.link.wait()

    def start(self, edge: Edge, key: str) -> None:
        here = edge.directory
        settings = {
            "node": edge.name,
            "bundle.url": f"https://127.0.0.1:{edge.port}/{BUNDLE}",
            "bundle.keys": json.dumps([key]),
            "ship.url": f"https://127.0.0.1:{edge.port}/v1/lines",
            "ship.token_file": here / "ship-token",
            "data": here / "data",
            "state_directory": here / "state",
            "listen.socket": here / "s",
            "listen.control_socket": here / "c",
            "workspaces": json.dumps({WORKSPACE: {"root": str(here / "workspace")}}),
        } | FAST
        words = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
        # Its certificates are those of the throw-away CA and no others; `env` becomes the daemon.
        command = ["env", f"SSL_CERT_FILE={self.plane / 'ca.pem'}", self.program, "serve", "--config"]
        command += [str(server.SHIPPED / "edge.yaml"), "--home", str(here / "home"), *words]
        edge.daemon = start(edge.name, command, edge.log, here)
        self.write()

    def wait_ready(self, edge: Edge) -> None:
        wait_for(lambda: alive(edge.daemon, edge.log) and is_ready(edge.directory / "s"), f"{edge.name} to be ready")

    def stop(self, edge: Edge, number: signal.Signals = signal.SIGTERM) -> None:
        if edge.daemon:
            edge.daemon.send(number)
            edge.daemon.wait(20)

    def down(self) -> None:
        """Ends what it has started, edges first so that they ship what they have, and removes its directory."""
        # A second Ctrl-C would leave processes; this takes a minute at most.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
        edges = [edge.daemon for edge in self.edges if edge.daemon]
        rest = [edge.link for edge in self.edges if edge.link]
        for group in (edges, [*rest, *(process for process in (self.nginx, self.sink) if process)]):
            there = [process for process in group if process.alive()]
            for process in there:
                process.send(signal.SIGCONT)
                process.send(signal.SIGTERM)
            for process in there:
                try:
                    process.wait(20)
                except TimeoutError:
                    process.send(signal.SIGKILL)
                    process.wait()
        remove(self.directory)

    def write(self) -> None:
        kept = {
            "program": self.program,
            "port": self.port,
            "nginx": self.nginx and asdict(self.nginx),
            "sink": self.sink and asdict(self.sink),
            "edges": [
                {
                    "name": edge.name,
                    "port": edge.port,
                    "link": edge.link and asdict(edge.link),
                    "daemon": edge.daemon and asdict(edge.daemon),
                }
                for edge in self.edges
            ],
        }
        record.write(self.directory / RECORD, kept)

    @classmethod
    def read(cls, directory: Path) -> Fleet:
        """A fleet that another command has started."""
        kept = record.read(directory / RECORD)
        fleet = cls(directory, kept["program"], kept["port"], [])
        fleet.nginx, fleet.sink = process_of(kept["nginx"]), process_of(kept["sink"])
        for one in kept["edges"]:
            edge = Edge(one["name"], directory / one["name"], one["port"])
            edge.link, edge.daemon = process_of(one["link"]), process_of(one["daemon"])
            fleet.edges.append(edge)
        return fleet

    def edge(self, name: str) -> Edge:
        return next(edge for edge in self.edges if edge.name == name)


def remove(directory: Path) -> None:
    """Also a verified copy, whose directories nobody may write to."""
    for above, _, _ in os.walk(directory):
        os.chmod(above, 0o700)
    shutil.rmtree(directory)


def process_of(kept: dict | None) -> Process | None:
    return Process(**kept) if kept else None


def private(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text)


def alive(process: Process | None, log: Path) -> bool:
    if process is None or not process.alive():
        lines = log.read_text(errors="replace").splitlines()[-5:] if log.exists() else []
        raise RuntimeError("\n".join([f"{process.name if process else 'a process'} has ended; see {log}:", *lines]))
    return True


def is_ready(path: Path) -> bool:
    """Whether a daemon behind this socket takes events."""
    try:
        return request(path, "GET", "/readyz")[0] == 200
    except OSError:
        return False


def request(path: Path, method: str, route: str, body: dict | None = None) -> tuple[int, dict]:
    """Asks a daemon. Raises `OSError` if there is no answer."""
    connection = http.client.HTTPConnection("hookyard", timeout=TIMEOUT)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.settimeout(TIMEOUT)
    try:
        connection.sock.connect(str(path))
        connection.request(method, route, json.dumps(body or {}), {"content-type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text.startswith(b"{") else {}
    except http.client.HTTPException as error:
        raise OSError(str(error)) from error
    finally:
        connection.close()


def is_open(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0
