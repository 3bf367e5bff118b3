"""Few and many nodes that have a part of a processor each: what they answer at the same quality, and what a simulation says.

Balancer, host and nodes share this machine, so each node gets so little that eight of them leave room for the others.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

import simulation
from cluster import Cluster
from history import percentile
from hosts import Host, tool_call
from simulation import Service

# The part of a processor that a node has.
SHARE = 0.1
# HAProxy places a server 16 times its weight on the ring; 256 is that of config/cluster/haproxy.cfg, and 1 the default.
POINTS, DEFAULT_POINTS = 16 * 256, 16
# Events per second of one node that has next to nothing to do.
IDLE_RATE = 30.0
# Unanswered events, for each node, that show that the rate is too high.
MOST_OPEN = 150
# How often the space in which the limit is to be found is halved.
HALVINGS = 5


@dataclass
class Measured:
    """What became of events at one rate."""

    nodes: int
    rate: float
    waits_ms: list[float] = field(default_factory=list)
    answered_by: Counter = field(default_factory=Counter)
    # Processor time of an event, in microseconds.
    balancer_us: float = 0.0
    node_us: float = 0.0
    host_us: float = 0.0
    is_too_much: bool = False

    def p(self, share: float) -> float:
        return percentile(self.waits_ms, share)

    def holds(self, longest_ms: float) -> bool:
        return not self.is_too_much and self.p(0.99) <= longest_ms

    def largest(self) -> float:
        """The events of the busiest node, as a multiple of its even share."""
        return max(self.answered_by.values()) * self.nodes / len(self.waits_ms)


class Lane:
    """Events at random moments, each of a run of its own, on as many connections as it takes."""

    def __init__(self, cluster: Cluster, found: Measured) -> None:
        self._cluster, self._found = cluster, found
        self._free: list[Host] = []
        self._open = 0

    async def send(self, name: str, due: float) -> None:
        host = self._free.pop() if self._free else Host(self._cluster.address, self._cluster.token())
        body = json.dumps(tool_call(name, f"{name}-0", False)).encode()
        status, headers, answer = await host.ask(name, f"{name}-0", body)
        if status != 200:
            raise RuntimeError(f"an event was answered {status}: {answer.decode()}")
        self._open -= 1
        self._found.waits_ms.append((time.monotonic() - due) * 1000)
        self._found.answered_by[headers["x-hookyard-node"]] += 1
        self._free.append(host)

    async def drive(self, prefix: str, seconds: float) -> None:
        chance = random.Random(prefix)
        begin = due = time.monotonic()
        number = 0
        async with asyncio.TaskGroup() as group:
            while (due := due + chance.expovariate(self._found.rate)) < begin + seconds:
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                if self._open > MOST_OPEN * self._found.nodes:
                    self._found.is_too_much = True
                    break
                self._open += 1
                group.create_task(self.send(f"{prefix}-{number}", due))
                number += 1
        for host in self._free:
            host.close()


def measured(cluster: Cluster, rate: float, seconds: float) -> Measured:
    def used() -> tuple[float, float, float]:
        nodes = sum(group.cpu_seconds() for group in cluster.groups.values())
        return cluster.balancers[0].running.cpu_seconds(), nodes, time.process_time()

    found = Measured(len(cluster.nodes), rate)
    before = used()
    asyncio.run(Lane(cluster, found).drive(f"run-{found.nodes}-{time.monotonic_ns()}", seconds))
    each = [(end - start) * 1e6 / max(1, len(found.waits_ms)) for start, end in zip(before, used())]
    found.balancer_us, found.node_us, found.host_us = each
    return found


def highest(cluster: Cluster, low: float, high: float, longest_ms: float, seconds: float) -> Measured:
    """The highest rate between these at which the events are answered in time."""
    best = None
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        now = measured(cluster, middle, seconds)
        low, high, best = (middle, high, now) if now.holds(longest_ms) else (low, middle, best)
    if best is None:
        raise RuntimeError(f"{len(cluster.nodes)} nodes do not answer {high:.0f} events a second in {longest_ms:.0f} ms")
    return best


def run(options: argparse.Namespace) -> int:
    found: list[Measured] = []
    longest = 0.0
    for nodes in options.nodes:
        with tempfile.TemporaryDirectory(prefix="hookyard-") as above:
            cluster = Cluster.make(Path(above) / "c", replace(options.shape, nodes=nodes, share=SHARE))
            try:
                cluster.up()
                measured(cluster, IDLE_RATE * nodes, 2)
                if not found:
                    idle = measured(cluster, IDLE_RATE, 3 * options.seconds)
                    longest = 2 * idle.p(0.99)
                    print(head(idle, longest), flush=True)
                expected = found[0].rate * nodes if found else SHARE * 1e6 / idle.node_us
                found.append(highest(cluster, 0.4 * expected, 1.2 * expected, longest, options.seconds))
            finally:
                cluster.down()
        print(row(found[-1], found[0], service(idle, found[-1]), longest), flush=True)
    print(beyond(found[-1], service(idle, found[-1]), longest))
    return 0


def service(idle: Measured, busy: Measured) -> Service:
    """What a node that is busy does for an event. It waits as long as one that is idle."""
    alone = Service(busy.node_us, 0, SHARE)
    worked = percentile(simulation.waits_ms([1.0], IDLE_RATE, alone), 0.5)
    return replace(alone, wait_ms=idle.p(0.5) - worked)


def head(idle: Measured, longest: float) -> str:
    return (
        f"Each node has {SHARE:.0%} of a processor. Idle, one answers in {idle.p(0.5):.0f} ms, and all but 1 % in {idle.p(0.99):.0f} ms:\n"
        f"the highest rates at which all but 1 % are answered in {longest:.0f} ms.\n\n"
        "| nodes | events/s | of N × one | simulated | p50 ms | p99 ms | busiest node | node µs | balancer µs | host µs |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    )


def row(now: Measured, one: Measured, what: Service, longest: float) -> str:
    shares = [now.answered_by[f"n{number}"] / len(now.waits_ms) for number in range(1, now.nodes + 1)]
    simulated = simulation.limit(shares, what, longest)
    cells = (
        now.nodes, f"{now.rate:.0f}", f"{now.rate / one.rate / now.nodes:.2f}", f"{simulated:.0f}", f"{now.p(0.5):.0f}",
        f"{now.p(0.99):.0f}", f"{now.largest():.2f} ×", f"{now.node_us:.0f}", f"{now.balancer_us:.0f}", f"{now.host_us:.0f}",
    )
    return f"| {' | '.join(map(str, cells))} |"


def beyond(last: Measured, what: Service, longest: float) -> str:
    """What the simulation says of more nodes, with and without a weight for each."""
    lines = ["", "| nodes, simulated | of N × one, weight 256 | weight 1 |", "| --- | --- | --- |"]
    one = simulation.limit([1.0], what, longest)
    for nodes in (8, 16, 32, 64):
        limits = [simulation.limit(simulation.ring(nodes, points, seed=1), what, longest) for points in (POINTS, DEFAULT_POINTS)]
        lines.append(f"| {nodes} | {' | '.join(f'{each / one / nodes:.2f}' for each in limits)} |")
    return "\n".join(lines)
