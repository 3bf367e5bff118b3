"""Processor time per event of each process, from /proc/PID/stat: directly at a node, and through the balancer. And how long an
event takes of a run that a node knows, and of one that it does not know yet: where nothing of the run is kept, and where a
rule counts, for which strict nodes claim the run.
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


# What no hook wants, and what only a rule wants that counts.
UNWANTED = {"event": "after_tool_dispatch", "tool_name": "Bash", "tool_input": {}, "tool_output": "made"}
COUNTED = {"event": "prompt_submitted", "prompt": "make"}
COUNTING = {
    "name": "counting",
    "events": [COUNTED["event"]],
    "handler": {"type": "rule", "deny": 'run.count("prompt") > 1000000'},
}


async def ask(host: Host, run: str, event: str, kind: dict = UNWANTED) -> None:
    whole = {"session_id": run, "run_id": run, "event_id": event, "workspace_id": WORKSPACE} | kind
    status, _, answer = await host.ask(run, event, json.dumps(whole).encode())
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


async def waits_ms(place: tuple[str, str], runs: int, kind: dict, seconds: float) -> list[float]:
    """How long each event took on one connection, of so many runs in turn; each of a run of its own without any."""
    host = Host(*place)
    name = f"{runs}-{time.monotonic_ns()}"
    for number in range(runs):
        await ask(host, f"{name}-{number}", f"{name}-{number}-first", kind)
    waits: list[float] = []
    end = time.monotonic() + seconds
    while (begin := time.monotonic()) < end:
        number = len(waits)
        await ask(host, f"{name}-{number % runs if runs else number}", f"{name}-{number}", kind)
        waits.append((time.monotonic() - begin) * 1000)
    host.close()
    return waits


async def ask_all(place: tuple[str, str], options: argparse.Namespace) -> int:
    end = time.monotonic() + options.seconds
    return sum(await asyncio.gather(*(ask_on(place, lane, end) for lane in range(options.connections))))


def run(options: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="hookyard-") as above:
        cluster = Cluster.make(Path(above) / "c", options.shape)
        for node in cluster.nodes:
            node.add_hook(COUNTING)
        try:
            cluster.up()
            print("| way | events | events/s | balancer µs | nodes µs | host µs |\n| --- | --- | --- | --- | --- | --- |")
            for way, address in (("one node", cluster.nodes[0].address), ("balancer, three nodes", cluster.address)):
                print(measured(way, cluster, (address, cluster.token()), options))
            print("\n| runs | events | p50 ms | p99 ms |\n| --- | --- | --- | --- |")
            place = (cluster.nodes[0].address, cluster.token())
            kinds = (("known", 20, UNWANTED), ("new", 0, UNWANTED), ("known, counted", 20, COUNTED), ("new, counted", 0, COUNTED))
            for name, runs, kind in kinds:
                waits = asyncio.run(waits_ms(place, runs, kind, options.seconds))
                print(f"| {name} | {len(waits)} | {percentile(waits, 0.5):.2f} | {percentile(waits, 0.99):.2f} |")
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
