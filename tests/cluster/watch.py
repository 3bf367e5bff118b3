"""What nodes count while a round goes on: a node that is killed takes its counters with it."""

from __future__ import annotations

import asyncio
from types import TracebackType

from cluster import Cluster
from nodes import Node

# Halts that a node answered before they were where they outlast it: on its disk, and in the store if there is one.
UNSTORED = 'hookyard_store_errors_total{reason="slow"}'
EVERY = 0.25


class Watch:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        # By process: the same node counts anew after a start.
        self._counted: dict[int, float] = {}
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Watch:
        self._tasks = [asyncio.create_task(self._look(node)) for node in self._cluster.nodes]
        return self

    async def __aexit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if error is None:
            await asyncio.gather(*(asyncio.to_thread(self._look_once, node) for node in self._cluster.nodes))

    async def _look(self, node: Node) -> None:
        while True:
            await asyncio.to_thread(self._look_once, node)
            await asyncio.sleep(EVERY)

    def _look_once(self, node: Node) -> None:
        process = node.running
        value = node.metric(UNSTORED)
        if value is not None and process is node.running:
            self._counted[process.pid] = value

    def unstored(self) -> int | None:
        """None: nodes say nothing of it."""
        return int(sum(self._counted.values())) if self._counted else None
