"""Lifecycle events through the queue: nodes, workers and the store are killed, and what hooks got is counted."""

from __future__ import annotations

import argparse
import http.client
import json
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import nats
import stores
from nodes import HOOK, WORKSPACE
from ports import free_port
from processes import Process, start, wait_for
from stores import Store

NAME = "hookyard"
# How long a worker may be silent here: longer than the servers need to agree who leads. The default of 30 s would only make rounds
# longer.
SILENCE = "15s"
HOOK_SECONDS = "0.02"
LOSSES = "hookyard_cluster_queue_replaced_total"
# A daemon looks at the queue so often, in seconds.
LOOKS = 5.0
# A worker that is killed so soon after the end of a hook may not have told the queue, in seconds.
AFTER_HOOK = 1.0
# At the end, events of killed workers come back once the store has waited for them.
SETTLED = 90.0


@dataclass
class Party:
    """A daemon: a node, or a worker."""

    name: str
    verb: str
    here: Path
    settings: dict[str, str]
    process: Process | None = None

    def prepare(self, log: Path, ends: Path, seconds: str) -> None:
        hooks = self.here / "workspace/.openharness/hooks"
        for made in (hooks, self.here / "home", self.here / "data", self.here / "state"):
            made.mkdir(mode=0o700, parents=True)
        command = f"exec python3 {HOOK} {log} {self.name} {seconds} {ends}"
        handler = {"type": "command", "command": command, "mode": "worker", "timeout_seconds": 20}
        (hooks / "note.yaml").write_text(json.dumps({"name": "note", "events": ["run_completed"], "handler": handler}))

    def start(self, program: str) -> None:
        here = self.here
        settings = {
            "node": self.name,
            "listen.socket": here / "s",
            "listen.control_socket": here / "c",
            "data": here / "data",
            "state_directory": here / "state",
            "trust": "off",
            "workspaces": f"{{{WORKSPACE}: {{root: {here / 'workspace'}}}}}",
        } | self.settings
        words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        command = [program, self.verb, "--home", str(here / "home"), *words]
        self.process = start(self.name, command, here / "log", here)

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        assert self.process
        self.process.send(number)
        self.process.wait()

    def ask(self, method: str, path: str, body: dict | None = None) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("hookyard")
        connection.sock = socket.socket(socket.AF_UNIX)
        try:
            connection.sock.settimeout(10)
            connection.sock.connect(str(self.here / "c"))
            connection.request(method, path, json.dumps(body) if body else None, {"content-type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        except http.client.HTTPException as error:
            raise OSError(str(error)) from error
        finally:
            connection.close()

    def ready(self) -> bool:
        try:
            return self.ask("GET", "/readyz")[0] == 200
        except OSError:
            return False

    def losses(self) -> int:
        """How often this process has found that events of the queue are lost."""
        metrics = self.ask("GET", "/metrics")[1].decode().splitlines()
        return int(next(line for line in metrics if line.startswith(f"{LOSSES} ")).split()[1])

    def tells_of_losses(self) -> int:
        """How often it was said, by all processes of this name."""
        return sum("accepted events" in line and "are lost" in line for line in (self.here / "log").read_text().splitlines())


class Wire:
    """As much of the protocol of NATS as is needed to ask and to publish."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=5)
        self.lines = self.socket.makefile("rb")
        self.lines.readline()
        self.socket.sendall(b'CONNECT {"verbose":false,"headers":true}\r\n')
        # Of this connection alone: others ask as well.
        self.inbox = f"inbox.{self.socket.getsockname()[1]}".encode()
        self.socket.sendall(b"SUB %s 1\r\n" % self.inbox)

    def ask(self, subject: str, payload: bytes) -> dict:
        self.socket.sendall(b"PUB %s %s %d\r\n%s\r\n" % (subject.encode(), self.inbox, len(payload), payload))
        while not (line := self.lines.readline()).startswith(b"MSG"):
            if line.startswith(b"PING"):
                self.socket.sendall(b"PONG\r\n")
        return json.loads(self.lines.read(int(line.split()[-1])))

    def messages(self, stream: str) -> int:
        return self.ask(f"$JS.API.STREAM.INFO.{stream}", b"")["state"]["messages"]


@dataclass
class Bench:
    """The servers of the store, a node and two workers."""

    program: str
    server: str
    here: Path
    servers: int
    stores: list[Store] = field(init=False)
    node: Party = field(init=False)
    workers: list[Party] = field(init=False)
    accepted: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        def place() -> str:
            return f"127.0.0.1:{free_port()}"

        self.stores = [
            Store(name, nats.Ports(place(), place(), place()), self.here / name) for name in nats.SERVERS[: self.servers]
        ]
        for store in self.stores:
            (store.directory / "data").mkdir(mode=0o700, parents=True)
        if len(self.stores) > 1:
            stores.configure(self.stores, lazy=0, apart=False)
        else:
            [store] = self.stores
            text = f"jetstream {{ store_dir: \"{store.directory}/data\", sync_interval: always, max_file_store: 2GB }}"
            listens = f'server_name: {store.name}\nlisten: "{store.ports.clients}"\nhttp: "{store.ports.monitor}"'
            (store.directory / "nats.conf").write_text(f"{listens}\n{text}\n")
        shared = stores.settings(self.stores, "answer", "watch") | {
            "cluster.replicas": str(self.servers), "cluster.trust_sync": "true", "cluster.worker_silence": SILENCE,
        }
        self.log, self.ends = self.here / "asked", self.here / "ended"
        self.node = Party("n1", "serve", self.here / "n1", shared | {"cluster.lifecycle": "queue"})
        self.workers = [Party(name, "work", self.here / name, shared) for name in ("w1", "w2")]
        for party in self.parties:
            party.prepare(self.log, self.ends, HOOK_SECONDS)
        self.start_stores()
        for party in self.parties:
            party.start(self.program)
            wait_for(party.ready, f"{party.name} to be ready")

    @property
    def parties(self) -> list[Party]:
        return [self.node, *self.workers]

    @property
    def clients(self) -> str:
        """A server that is there. Each says that it is not ready for a moment after a consumer was made or deleted."""
        wait_for(lambda: any(store.ready() for store in self.stores), "a server to be ready")
        return next((store for store in self.stores if store.ready()), self.stores[0]).ports.clients

    def start_stores(self) -> None:
        for store in self.stores:
            store.start(self.server, [])
        for store in self.stores:
            wait_for(store.ready, f"{store.name} to be ready; see {store.log}")

    def kill_stores(self) -> None:
        for store in self.stores:
            store.running.send(signal.SIGKILL)
            store.running.wait()

    def end(self) -> None:
        for process in [party.process for party in (*self.parties, *self.stores)]:
            if process is not None:
                process.send(signal.SIGKILL)
                process.wait()

    def send(self, event_id: str, run: str = "r", **more: object) -> bool:
        """Whether the node has accepted it: an event without an answer may have been, and does not count."""
        body = {"event": "run_completed", "session_id": "s", "run_id": run, "event_id": event_id, "workspace_id": WORKSPACE}
        try:
            status, _ = self.node.ask("POST", "/v1/events", body | {"wait": False} | more)
        except OSError:
            return False
        if status == 200:
            self.accepted.append(event_id)
        return status == 200

    def asked(self) -> dict[str, list[tuple[int, str]]]:
        """The deliveries of each event, in the order in which they began, and which worker had it."""
        found = defaultdict(list)
        for line in self.log.read_text().splitlines() if self.log.exists() else []:
            event_id, delivery, worker = line.split()
            found[event_id].append((int(delivery), worker))
        return found

    def status(self) -> dict:
        """What an operator sees."""
        return json.loads(self.operate("status", "--json").stdout)

    def operate(self, *words: str) -> subprocess.CompletedProcess[str]:
        """What `hookyard cluster` prints."""
        settings = [word for key, value in self.workers[0].settings.items() for word in ("--set", f"{key}={value}")]
        command = [self.program, "cluster", *words, *settings]
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, check=False)

    def settle(self) -> None:
        wait_for(lambda: set(self.accepted) <= set(self.asked()), "all accepted events", SETTLED)
        wait_for(lambda: Wire(self.clients).messages(f"QUEUE_{NAME}") == 0, "an empty queue", SETTLED)


def expect(condition: bool, what: str, found: object) -> None:
    if not condition:
        raise RuntimeError(f"{what}; found {found}")


def each_once(bench: Bench) -> None:
    sent = [f"once-{number}" for number in range(50)]
    expect(all(bench.send(event_id, f"r{event_id}") for event_id in sent), "all are accepted", bench.accepted)
    expect(bench.send(sent[0], f"r{sent[0]}"), "a repetition is accepted", sent[0])
    bench.settle()
    asked = bench.asked()
    expect(all(len(asked[one]) == 1 and asked[one][0][0] == 1 for one in sent), "each is delivered once", asked)
    expect({worker for one in sent for _, worker in asked[one]} <= {"w1", "w2"}, "by workers alone", asked)
    status, answer = bench.workers[0].ask("POST", "/v1/events", {"event": "run_completed", "session_id": "s", "run_id": "r"})
    expect(status == 400 and b'"worker"' in answer, "a worker takes no events of hosts", answer)


def store_away(bench: Bench) -> None:
    bench.kill_stores()
    sent = [f"away-{number}" for number in range(20)]
    expect(all(bench.send(event_id) for event_id in sent), "accepted without a store", bench.accepted[-20:])
    # Some attempts to reach it fail meanwhile, and after a kill the outbox has the events still.
    time.sleep(2)
    bench.node.kill()
    bench.node.start(bench.program)
    time.sleep(1)
    bench.start_stores()
    wait_for(bench.node.ready, "the node to be ready")
    bench.settle()
    asked = bench.asked()
    expect(all(len(asked[one]) == 1 for one in sent), "each is delivered once, later", {one: asked[one] for one in sent})


def poison(bench: Bench) -> None:
    wire = Wire(bench.clients)
    subject = f"hookyard-queue.{NAME}.run_completed"
    for bad in (b"", b"no event", b'{"v":1,"workspace":"shop"', b"x" * 900_000, b'{"v":1,"workspace":"shop","delivery":1,"event":{"v":1}}'):
        wire.ask(subject, bad)
    wait_for(lambda: Wire(bench.clients).messages(f"DEAD_{NAME}") == 5, "five dead letters")
    told = {letter["error"] for letter in json.loads(bench.operate("dead", "list", "--json").stdout)["letters"]}
    whole = {"its JSON is not whole: it ends after 0 bytes", "its JSON is not whole: it ends after 25 bytes"}
    wrong = {"it is no JSON at line 1, column 1", "it is no JSON at line 1, column 2"}
    event = "a field is there twice, a name in it is none, or its `event` is no lifecycle event"
    expect(told == whole | wrong | {event}, "each says what is wrong with it", told)
    wire.ask(subject, b'{"v":2,"something":"new"}')
    expect(bench.send("after-poison"), "accepted", None)
    wait_for(lambda: "after-poison" in bench.asked(), "the event behind one of a later version")
    expect(wire.messages(f"DEAD_{NAME}") == 5, "one of a later version is left to later workers", wire.messages(f"DEAD_{NAME}"))
    wire.ask(f"$JS.API.STREAM.PURGE.QUEUE_{NAME}", b"")


def worker_stopped(bench: Bench) -> None:
    """SIGTERM loses and repeats nothing."""
    sent = [f"stopped-{number}" for number in range(200)]
    for number, event_id in enumerate(sent):
        expect(bench.send(event_id, f"r{number % 20}"), "accepted", event_id)
        if number == 100:
            bench.workers[0].kill(signal.SIGTERM)
    bench.settle()
    asked = bench.asked()
    twice = {one: asked[one] for one in sent if len(asked[one]) != 1}
    expect(not twice, "each is delivered once", twice)
    bench.workers[0].start(bench.program)
    wait_for(bench.workers[0].ready, "w1 to be ready")


def consumer_gone(bench: Bench) -> None:
    """What workers had when the queue forgot it comes again, and says so."""
    sent = [f"forgotten-{number}" for number in range(100)]
    expect(all([bench.send(event_id, f"r{event_id}") for event_id in sent]), "accepted", None)
    Wire(bench.clients).ask(f"$JS.API.CONSUMER.DELETE.QUEUE_{NAME}.workers", b"")
    bench.settle()
    unmarked = [one for one in sent if any(delivery == 1 for delivery, _ in sorted(bench.asked()[one])[1:])]
    expect(not unmarked, "repetitions are marked", unmarked)


def queue_purged(bench: Bench) -> None:
    """What waited in a queue that is purged is lost: the node says so, and an operator sees it."""
    expect(bench.node.losses() == 0, "nothing was said before", bench.node.losses())
    for worker in bench.workers:
        worker.kill(signal.SIGTERM)
    # The node looks at it.
    time.sleep(2 * LOOKS)
    lost = [event_id for event_id in (f"purged-{number}" for number in range(20)) if bench.send(event_id)]
    wait_for(lambda: Wire(bench.clients).messages(f"QUEUE_{NAME}") == len(lost), "the events in the queue")
    Wire(bench.clients).ask(f"$JS.API.STREAM.PURGE.QUEUE_{NAME}", b"")
    wait_for(lambda: bench.node.losses() == 1, "the node to notice the loss", 3 * LOOKS)
    bench.accepted = [one for one in bench.accepted if one not in lost]
    wait_for(lambda: bench.status()["queue"]["lost_ms"] is not None, "an operator to see it", LOOKS)
    for worker in bench.workers:
        worker.start(bench.program)
        wait_for(worker.ready, f"{worker.name} to be ready")


def queue_gone(bench: Bench) -> None:
    """What waited in a queue that is deleted is lost: the node counts that once, and an operator sees it."""
    before = bench.node.losses()
    for worker in bench.workers:
        worker.kill(signal.SIGTERM)
    lost = [event_id for event_id in (f"lost-{number}" for number in range(20)) if bench.send(event_id)]
    wait_for(lambda: Wire(bench.clients).messages(f"QUEUE_{NAME}") == len(lost), "the events in the queue")
    wrong = bench.operate("check").stderr
    expect(f"no worker of the queue answers, with {len(lost)} events waiting" in wrong, "an operator hears of it", wrong)
    Wire(bench.clients).ask(f"$JS.API.STREAM.DELETE.QUEUE_{NAME}", b"")
    expect(all(bench.send(f"kept-{number}") for number in range(20)), "accepted without a queue", None)
    bench.accepted = [one for one in bench.accepted if one not in lost]
    for worker in bench.workers:
        worker.start(bench.program)
    bench.settle()
    expect(bench.node.losses() == before + 1, "the node counts it", bench.node.losses())
    expect(bench.status()["queue"]["made_again_ms"] is not None, "an operator sees it", None)


def kills(bench: Bench, count: int, seed: int, store: bool) -> dict[str, int]:
    told = sum(party.tells_of_losses() for party in bench.parties)
    draw, begun, stop = random.Random(seed), len(bench.accepted), threading.Event()
    killings: list[tuple[float, str]] = []

    def load() -> None:
        number = 0
        while not stop.is_set():
            bench.send(f"k{number}", f"r{number % 30}")
            number += 1
            time.sleep(0.005)

    sending = threading.Thread(target=load)
    sending.start()
    try:
        for _ in range(count):
            time.sleep(draw.uniform(0.1, 0.6))
            killed = draw.choice([*bench.parties, draw.choice(bench.stores)] if store else bench.parties)
            if isinstance(killed, Store):
                killed.running.send(signal.SIGKILL)
                killings.append((time.monotonic(), killed.name))
                killed.running.wait()
                killed.start(bench.server, [])
            else:
                killings.append((time.monotonic(), killed.name))
                killed.kill()
                killed.start(bench.program)
            wait_for(killed.ready, f"{killed.name} to be ready")
    finally:
        stop.set()
        sending.join()
    accepted = bench.accepted[begun:]
    try:
        bench.settle()
    except TimeoutError as error:
        print(error, file=sys.stderr)
    asked = bench.asked()
    where = stages(bench, [one for one in accepted if len(asked[one]) > 1], killings)
    again = [delivery for one in accepted for delivery, _ in sorted(asked[one])[1:]]
    return {
        "kills": count,
        "accepted": len(accepted),
        "lost": sum(not asked[one] for one in accepted),
        "twice": sum(len(asked[one]) > 1 for one in accepted),
        "repetitions not marked": sum(delivery == 1 for delivery in again),
        "said to be lost": sum(party.tells_of_losses() for party in bench.parties) - told,
    } | where


def stages(bench: Bench, twice: list[str], killings: list[tuple[float, str]]) -> dict[str, int]:
    """Where events were that came twice when something was killed."""
    spans = defaultdict(list)
    for line in bench.ends.read_text().splitlines():
        event_id, worker, begun, ended = line.split()
        spans[event_id].append((float(begun), float(ended), worker))
    found = {"killed in their hooks": 0, "killed after their hooks": 0, "otherwise": 0}
    for one in twice:
        first, worker = next(iter(sorted(spans[one])), None), bench.asked()[one][0][1]
        # A hook that was killed with its worker has written no end.
        if first is None or first[2] != worker:
            found["killed in their hooks"] += 1
            continue
        begun, ended, _ = first
        kills = [at for at, name in killings if name == worker]
        after = min((at - ended for at in kills if at >= ended), default=1e9)
        if any(begun <= at <= ended for at in kills):
            found["killed in their hooks"] += 1
        elif after < AFTER_HOOK:
            found["killed after their hooks"] += 1
        else:
            found["otherwise"] += 1
    return found


def run(options: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="hookyard-lifecycle-") as made:
        bench = Bench(options.program, nats.program(), Path(made), options.servers)
        try:
            for check in (each_once, store_away, poison, worker_stopped, consumer_gone, queue_purged, queue_gone):
                check(bench)
                print(f"{check.__name__.replace('_', ' ')}: as promised", flush=True)
            counted = kills(bench, options.kills, options.seed, options.store_too)
        except BaseException:
            for party in bench.parties:
                print(f"== {party.name}", *(party.here / "log").read_text().splitlines()[-15:], sep="\n", file=sys.stderr)
            raise
        finally:
            bench.end()
    print("; ".join(f"{what}: {number}" for what, number in counted.items()))
    # A server that is killed may forget that it has given an event to a worker.
    return 1 if counted["lost"] or counted["said to be lost"] or (counted["repetitions not marked"] and not options.store_too) else 0
