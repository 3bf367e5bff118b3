"""Processor time per event of each process, from /proc/PID/stat: directly at a node, and through the balancer."""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from pathlib import Path

from cluster import Cluster
from hosts import Host
from nodes import WORKSPACE


async def ask_on(place: tuple[str, str], lane: int, end: float) -> int:
    """A closed loop on one connection, with events that no hook wants; how many were answered."""
    host = Host(*place)
    count = 0
    while time.monotonic() < end:
        run, event = f"load-{lane}-{count % 20}", f"{lane}-{count}"
        body = {"event": "after_tool_dispatch", "session_id": run, "run_id": run, "event_id": event,
                "workspace_id": WORKSPACE, "tool_name": "Bash", "tool_input": {}, "tool_output": "made"}
        status, _, answer = await host.ask(run, event, json.dumps(body).encode())
        if status != 200:
            raise RuntimeError(f"an event was answered {status}: {answer.decode()}")
        count += 1
    host.close()
    return count


async def ask_all(place: tuple[str, str], options: argparse.Namespace) -> int:
    end = time.monotonic() + options.seconds
    return sum(await asyncio.gather(*(ask_on(place, lane, end) for lane in range(options.connections))))


def run(options: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="hookyard-") as above:
        cluster = Cluster.make(Path(above) / "c", options.shape)
        try:
            cluster.up()
            print("| way | events | events/s | balancer µs | nodes µs | host µs |\n| --- | --- | --- | --- | --- | --- |")
            for way, address in (("one node", cluster.nodes[0].address), ("balancer, three nodes", cluster.address)):
                print(measured(way, cluster, (address, cluster.token()), options))
        finally:
            cluster.down()
    return 0


def measured(way: str, cluster: Cluster, place: tuple[str, str], options: argparse.Namespace) -> str:
    def used() -> tuple[float, float, float]:
        nodes = sum(node.running.cpu_seconds() for node in cluster.nodes)
        return cluster.balancers[0].running.cpu_seconds(), nodes, time.process_time()

    before, begin = used(), time.monotonic()
    events = asyncio.run(ask_all(place, options))
    seconds, after = time.monotonic() - begin, used()
    each = [f"{(end - start) * 1e6 / events:.0f}" for start, end in zip(before, after)]
    return f"| {way} | {events} | {events / seconds:.0f} | {' | '.join(each)} |"
