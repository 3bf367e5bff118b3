"""Hosts of agents: runs at a fixed rate, with the headers and the tries that docs/hosts.md asks for."""

from __future__ import annotations

import asyncio
import json
import random
import time
from dataclasses import dataclass

from history import Event
from nodes import WORKSPACE

# A host waits longer than hooks may take, and gives an event up in the end.
ANSWER, GIVE_UP = 15.0, 30.0


@dataclass(frozen=True)
class Load:
    seconds: float = 14.0
    # For faults that take longer than others.
    longer: float = 0.0
    # Events per second of all runs together.
    rate: int = 200
    runs: int = 100
    # So many runs are halted.
    halting: float = 0.4
    # So many events are lifecycle events, each of a run of its own.
    lifecycle: float = 0.1
    # Every so manieth run has two hosts, as an agent and its subagent, that do not wait for each other.
    paired: int = 5

    @property
    def whole(self) -> float:
        return self.seconds + self.longer


@dataclass(frozen=True)
class Place:
    """Where hosts send their events: to each balancer in turn."""

    balancers: tuple[str, ...]
    token: str


@dataclass
class Host:
    """One connection of one host, which is opened anew after each failure."""

    address: str
    token: str
    reader: asyncio.StreamReader | None = None
    writer: asyncio.StreamWriter | None = None

    async def ask(self, run: str, event_id: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        if self.writer is None:
            host, _, port = self.address.rpartition(":")
            self.reader, self.writer = await asyncio.open_connection(host, int(port))
        assert self.reader is not None
        head = (
            f"POST /v1/events HTTP/1.1\r\nhost: hookyard\r\nauthorization: Bearer {self.token}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
            f"x-hookyard-run: {run}\r\nx-hookyard-event-id: {event_id}\r\n\r\n"
        )
        self.writer.write(head.encode() + body)
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:] if line)}
        if "content-length" in headers:
            content = await self.reader.readexactly(int(headers["content-length"]))
        else:
            content = await self.reader.read()
            self.close()
        if headers.get("connection") == "close":
            self.close()
        return int(lines[0].split(" ")[1]), headers, content

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
        self.reader = self.writer = None


async def send(host: Host, event: Event, body: dict) -> None:
    """Sends an event until it has a verdict, by the words of the answers."""
    content = json.dumps(body).encode()
    event.sent = time.monotonic()
    while True:
        pause, failure = await attempt(host, event, content)
        if failure is None:
            return
        event.failures.append(failure)
        event.answered = time.monotonic()
        if pause is None or event.answered - event.sent > GIVE_UP:
            return
        await asyncio.sleep(pause)


async def attempt(host: Host, event: Event, content: bytes) -> tuple[float | None, str | None]:
    """The pause before the next try, if another one may help, and what went wrong."""
    try:
        status, headers, answer = await asyncio.wait_for(host.ask(event.run, event.id, content), ANSWER)
    except ConnectionRefusedError:
        host.close()
        return 0.1, "refused"
    except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        host.close()
        # Hooks may have run. The event has an id, so it may be repeated.
        return 0.1, "reset"
    except asyncio.TimeoutError:
        host.close()
        return 0.1, "no answer"
    if status == 200:
        event.answered = time.monotonic()
        event.node = headers.get("x-hookyard-node", "")
        event.verdict = json.loads(answer)["verdict"]
        return None, None
    try:
        error = json.loads(answer)["error"]
    except (ValueError, KeyError):
        # The balancer's own words: it found no node, or lost it.
        return 0.2, f"balancer {status}"
    pause = None if error["retry"] == "never" else float(headers.get("retry-after", 0.2))
    return pause, f"{status} {error['code']}"


def tool_call(run: str, event_id: str, halt: bool) -> dict:
    return {
        "event": "before_tool_dispatch", "session_id": run, "run_id": run, "event_id": event_id,
        "workspace_id": WORKSPACE, "tool_name": "Bash", "tool_input": {"command": "make", "halt": halt},
    }


def completion(run: str, event_id: str) -> dict:
    return {
        "event": "run_completed", "session_id": run, "run_id": run, "event_id": event_id, "wait": False,
        "workspace_id": WORKSPACE, "trigger_type": "user", "run_status": "completed",
    }


class Caller:
    """A host with a connection to each balancer."""

    def __init__(self, place: Place) -> None:
        self._hosts = [Host(address, place.token) for address in place.balancers]
        self._sent = 0

    async def send(self, event: Event, body: dict) -> None:
        host = self._hosts[self._sent % len(self._hosts)]
        self._sent += 1
        await send(host, event, body)

    def close(self) -> None:
        for host in self._hosts:
            host.close()


async def drive_run(name: str, seed: str, load: Load, place: Place, begin: float, events: list[Event]) -> None:
    """One run: the first of its hosts brings its halt, if it has one."""
    chance = random.Random(seed)
    count = 2 if chance.randrange(load.paired) == 0 else 1
    distance = count * load.runs / (load.rate * (1 - load.lifecycle))
    # One in two before a fault begins, which has to find something to be forgotten; the others at any time.
    early, late = chance.uniform(0.02, 0.25) * load.seconds, chance.uniform(0.1, 0.8) * load.whole
    halt_at = begin + chance.choice((early, late)) if chance.random() < load.halting else None
    async with asyncio.TaskGroup() as group:
        for number in range(count):
            due = begin + chance.random() * distance
            mine = halt_at if number == 0 else None
            group.create_task(drive_host((name, f"{name}-{number}"), due, distance, mine, begin + load.whole, place, events))


async def drive_host(
    names: tuple[str, str], due: float, distance: float, halt_at: float | None, end: float, place: Place, events: list[Event]
) -> None:
    """Its events are due at equal distances, and one follows the answer of the other."""
    run, prefix = names
    caller = Caller(place)
    number = 0
    while due < end:
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        halt = halt_at is not None and due >= halt_at
        event = Event(run, f"{prefix}-{number}", halts=halt, due=due)
        events.append(event)
        await caller.send(event, tool_call(run, event.id, halt))
        if halt and event.verdict is not None:
            halt_at = None
        number += 1
        due += distance
    caller.close()


async def drive_completions(lane: int, lanes: int, load: Load, place: Place, begin: float, events: list[Event]) -> None:
    """Runs that end, one after the other."""
    distance = lanes / (load.rate * load.lifecycle)
    due = begin + lane * distance / lanes
    caller = Caller(place)
    number = 0
    while due < begin + load.whole:
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        run = f"end-{lane}-{number}"
        event = Event(run, f"{run}-0", lifecycle=True, due=due)
        events.append(event)
        await caller.send(event, completion(run, event.id))
        number += 1
        due += distance
    caller.close()


async def drive(load: Load, seed: int, place: Place) -> list[Event]:
    events: list[Event] = []
    begin = time.monotonic() + 0.2
    lanes = 8
    async with asyncio.TaskGroup() as group:
        for number in range(load.runs):
            name = f"run-{number}"
            group.create_task(drive_run(name, f"{seed}/{name}", load, place, begin, events))
        for lane in range(lanes):
            group.create_task(drive_completions(lane, lanes, load, place, begin, events))
    return events
