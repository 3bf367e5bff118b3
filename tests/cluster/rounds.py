"""A round: a new cluster, a load, a fault in the middle of it, and a judgement."""

from __future__ import annotations

import asyncio
import multiprocessing
import random
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

import hosts
from cluster import Cluster, Shape
from faults import FAULTS
from history import Event, Judgement, judge
from network import Unavailable
from watch import Watch

# Deliveries are tried again after 1, 4, 16 and 64 s; a killed node tries at its start.
SETTLE = 40.0
# When the fault begins, as a part of the load's time.
FAULT_AT = (0.25, 0.32)


@dataclass
class Round:
    fault: str
    shape: Shape
    seed: int
    judgement: Judgement
    # How long the fault took, and when it began after the load.
    began: float
    lasted: float


@dataclass
class Summary:
    """The rounds of a fault with clusters of one shape."""

    fault: str
    shape: Shape
    rounds: list[Round] = field(default_factory=list)
    # Why there are no more rounds.
    skipped: str | None = None

    def total(self) -> Judgement:
        total = Judgement()
        for one in self.rounds:
            total.add(one.judgement)
        return total

    def broken(self) -> int:
        """How much of what is promised was not kept. Where halts are not, their number is what the table is for."""
        total, fault = self.total(), FAULTS[self.fault]
        wrong = total.wrong if fault.keeps_halts(self.shape) else 0
        lost = 0 if fault.loses_lifecycle else total.lost
        return total.broken() + wrong + lost


def play(fault_name: str, shape: Shape, load: hosts.Load, seed: int) -> Round:
    fault = FAULTS[fault_name]
    with tempfile.TemporaryDirectory(prefix="hookyard-") as above:
        cluster = Cluster.make(Path(above) / "c", fault.shape(shape))
        try:
            cluster.up()
            return asyncio.run(_play(fault_name, cluster, replace(load, longer=fault.longer), seed))
        finally:
            cluster.down()


async def _play(fault_name: str, cluster: Cluster, load: hosts.Load, seed: int) -> Round:
    chance = random.Random(f"{seed}/fault")
    victim = chance.choice(cluster.nodes)
    async with Watch(cluster) as watch:
        begin = time.monotonic()
        driving = asyncio.create_task(hosts.drive(load, seed, place(cluster)))
        await asyncio.sleep(load.seconds * chance.uniform(*FAULT_AT))
        began = time.monotonic()
        await FAULTS[fault_name].happens(cluster, victim)
        over = time.monotonic()
        events = await driving
        await settle(cluster, events)
    judgement = judge(events, cluster.asked(), over)
    judgement.unstored = watch.unstored()
    return Round(fault_name, cluster.shape, seed, judgement, began - begin, over - began)


# A number of the caller, and what `play` takes.
Task = tuple[int, tuple[str, Shape, hosts.Load, int]]


def played(tasks: list[Task], at_once: int) -> Iterator[tuple[int, Round | Unavailable]]:
    """Each round with its number, as they end: in a process of its own, so that its hosts wait for no other round's."""
    running: dict[Connection, BaseProcess] = {}
    fork, left = multiprocessing.get_context("fork"), list(reversed(tasks))
    try:
        while left or running:
            while left and len(running) < at_once:
                result, there = fork.Pipe(duplex=False)
                running[result] = fork.Process(target=_tell, args=(there, left.pop()))
                running[result].start()
                there.close()
            for result in wait(list(running)):
                assert isinstance(result, Connection)
                told = result.recv()
                running.pop(result).join()
                if isinstance(told, str):
                    raise RuntimeError(told)
                yield told
    finally:
        # They end their clusters first.
        for process in running.values():
            process.terminate()
        for process in running.values():
            process.join()


def _tell(there: Connection, task: Task) -> None:
    number, what = task
    try:
        there.send((number, play(*what)))
    except Unavailable as error:
        there.send((number, error))
    except Exception as error:
        there.send(f"{what[0]}, seed {what[3]}: {error or type(error).__name__}")


def place(cluster: Cluster) -> hosts.Place:
    return hosts.Place(tuple(each.address for each in cluster.balancers), cluster.token())


async def settle(cluster: Cluster, events: list[Event]) -> None:
    """Until what was accepted is delivered, or long enough for it to count as lost."""
    accepted = {event.id for event in events if event.lifecycle and event.verdict is not None}
    end = time.monotonic() + SETTLE
    while time.monotonic() < end and not accepted <= {event for event, _, _ in cluster.asked()}:
        await asyncio.sleep(0.2)
