"""Processor time per event of each process, from /proc/PID/stat: directly at a node, and through the balancer. And how long an
event takes of a run that a node knows, and of one that it does not know yet.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from pathlib import Path

from cluster import Cluster
from history import percentile
from hosts import Host
from nodes import WORKSPACE


def event_of(run: str, event: str) -> bytes:
    """One that no hook wants."""
    return json.dumps({
        "event": "after_tool_dispatch", "session_id": run, "run_id": run, "event_id": event, "workspace_id": WORKSPACE,
        "tool_name": "Bash", "tool_input": {}, "tool_output": "made",
    }).encode()


async def ask(host: Host, run: str, event: str) -> None:
    status, _, answer = await host.ask(run, event, event_of(run, event))
    if status != 200:
        raise RuntimeError(f"an event was answered {status}: {answer.decode()}")


async def ask_on(place: tuple[str, str], lane: int, end: float) -> int:
    """A closed loop on one connection; how many were answered."""
    host = Host(*place)
    count = 0
    while time.monotonic() < end:
        await ask(host, f"load-{lane}-{count % 20}", f"{lane}-{count}")
        count += 1
    host.close()
    return count


async def waits_ms(place: tuple[str, str], runs: int, seconds: float) -> list[float]:
    """How long each event took on one connection, of so many runs in turn; each of a run of its own without any."""
    host = Host(*place)
    kind = f"{runs}-{time.monotonic_ns()}"
    for number in range(runs):
        await ask(host, f"{kind}-{number}", f"{kind}-{number}-first")
    waits: list[float] = []
    end = time.monotonic() + seconds
    while (begin := time.monotonic()) < end:
        number = len(waits)
        await ask(host, f"{kind}-{number % runs if runs else number}", f"{kind}-{number}")
        waits.append((time.monotonic() - begin) * 1000)
    host.close()
    return waits


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
            print("\n| runs | events | p50 ms | p99 ms |\n| --- | --- | --- | --- |")
            place = (cluster.nodes[0].address, cluster.token())
            for kind, runs in (("known", 20), ("new", 0)):
                waits = asyncio.run(waits_ms(place, runs, options.seconds))
                print(f"| {kind} | {len(waits)} | {percentile(waits, 0.5):.2f} | {percentile(waits, 0.99):.2f} |")
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
