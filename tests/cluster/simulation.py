"""Nodes with a part of a processor each behind a ring, simulated: for more nodes than one machine can show.

An event takes its processor time at the node that its run is hashed to, one after the other; a node that has used up its part
of a period waits for the next one. Its hook waits as long for every event, beside the others.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from history import percentile
from throttle import PERIOD_US

# Events of a run of the simulation, for each node: enough for a percentile that a few do not decide.
EVENTS = 4_000


@dataclass(frozen=True)
class Service:
    """What a node does for an event."""

    # Processor time, in microseconds.
    work_us: float
    # What an event waits for that needs no processor of the node: its hook, and the way there.
    wait_ms: float
    # The node's part of a processor.
    share: float


def ring(nodes: int, points: int, seed: int) -> list[float]:
    """The share of all runs that each node has, with so many points on the ring."""
    chance = random.Random(seed)
    places = sorted((chance.random(), node) for node in range(nodes) for _ in range(points))
    shares = [0.0] * nodes
    before = places[-1][0] - 1
    for place, node in places:
        shares[node] += place - before
        before = place
    return shares


def waits_ms(shares: Sequence[float], rate: float, service: Service, seed: int = 1) -> list[float]:
    """How long each event took, with so many of them in a second at any time."""
    chance = random.Random(seed)
    nodes = [_Node(service) for _ in shares]
    now, waits = 0.0, []
    for node in chance.choices(nodes, shares, k=EVENTS * len(shares)):
        now += chance.expovariate(rate) * 1e6
        waits.append((node.serve(now) - now) / 1000 + service.wait_ms)
    return waits


def limit(shares: Sequence[float], service: Service, longest_ms: float) -> float:
    """The highest rate at which all but one in a hundred events are answered within this time."""
    low, high = 0.0, 1.5e6 * service.share / service.work_us * len(shares)
    for _ in range(12):
        middle = (low + high) / 2
        if percentile(waits_ms(shares, middle, service), 0.99) <= longest_ms:
            low = middle
        else:
            high = middle
    return low


class _Node:
    def __init__(self, service: Service) -> None:
        self._work, self._quota = service.work_us, service.share * PERIOD_US
        self._free, self._period, self._left = 0.0, -1, 0.0

    def serve(self, now: float) -> float:
        """When the work is done for an event that comes now; microseconds, as all here."""
        at, work = max(now, self._free), self._work
        while True:
            if (period := int(at // PERIOD_US)) != self._period:
                self._period, self._left = period, self._quota
            end = float((period + 1) * PERIOD_US)
            done = min(work, self._left, end - at)
            at, work, self._left = at + done, work - done, self._left - done
            if work <= 1e-9:
                self._free = at
                return at
            at = end
