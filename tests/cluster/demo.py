"""A demonstration: runs go on while a node is killed, the server that leads the store is killed, and a node is drained."""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import faults
import hosts
from cluster import Cluster
from history import Event, Judgement, judge, wrong_events
from rounds import place, settle
from watch import Watch

SECONDS = 34.0
# How long nothing happens at first, and after each fault.
QUIET = 4.0


@dataclass
class Phase:
    what: str
    # Seconds after the load began.
    begins: float


def run(options: argparse.Namespace) -> int:
    load = hosts.Load(options.seconds, rate=options.rate, runs=options.runs)
    with tempfile.TemporaryDirectory(prefix="hookyard-") as above:
        cluster = Cluster.make(Path(above) / "c", options.shape)
        try:
            cluster.up()
            print(introduction(cluster, load), flush=True)
            events, phases, judgement = asyncio.run(_run(cluster, load, options.seed))
        finally:
            cluster.down()
    print(page(events, phases, judgement, shared=bool(options.shape.store)))
    wrong = judgement.wrong if options.shape.store else 0
    return 1 if judgement.broken() or judgement.lost or judgement.no_verdict or wrong else 0


async def _run(cluster: Cluster, load: hosts.Load, seed: int) -> tuple[list[Event], list[Phase], Judgement]:
    killed, drained = random.Random(seed).sample(cluster.nodes, 2)
    phases = []

    def enter(what: str) -> None:
        phases.append(Phase(what, time.monotonic()))

    async with Watch(cluster) as watch:
        driving = asyncio.create_task(hosts.drive(load, seed, place(cluster)))
        enter("all is well")
        await asyncio.sleep(QUIET)
        enter(f"{killed.name} killed")
        await faults.kill(cluster, killed)
        enter(f"{killed.name} back")
        await asyncio.sleep(QUIET)
        if cluster.stores:
            leader = await asyncio.to_thread(cluster.wait_leader)
            enter(f"{leader.name}, leader, killed")
            await faults.store_leader(cluster, killed)
            enter(f"{leader.name} back")
            await asyncio.sleep(QUIET)
        enter(f"{drained.name} drained")
        await faults.drain(cluster, drained)
        enter(f"{drained.name} back")
        over = time.monotonic()
        events = await driving
        await settle(cluster, events)
    judgement = judge(events, cluster.asked(), over)
    judgement.unstored = watch.unstored()
    return events, phases, judgement


def introduction(cluster: Cluster, load: hosts.Load) -> str:
    store = "halts in a store of three servers" if cluster.stores else "each with its own halts"
    return (
        f"{len(cluster.nodes)} nodes behind a balancer, {store}. For {load.seconds:.0f} s,\n"
        f"hosts of {load.runs} runs send {load.rate} events a second; four runs in ten are halted at some\n"
        "moment, and their hosts go on, which yours should not, to see what comes.\n"
    )


HEAD = "phase                from s  events  wrong  no verdict  p50 ms  p99 ms  worst ms\n"


def page(events: list[Event], phases: list[Phase], total: Judgement, shared: bool) -> str:
    """In 80 columns."""
    begin = phases[0].begins
    ends = [phase.begins for phase in phases[1:]] + [float("inf")]
    lines = []
    for phase, end in zip(phases, ends):
        # The first events are due a moment before anybody waits.
        first = 0.0 if phase is phases[0] else phase.begins
        those = [event for event in events if first <= event.due < end]
        lines.append(row(phase.what, f"{phase.begins - begin:.1f}", those, events))
    lines.append(row("all", "", events, events))
    return HEAD + "\n".join(lines) + "\n\n" + "\n".join(conclusion(total, shared))


def row(what: str, begins: str, those: list[Event], of: list[Event]) -> str:
    chosen = set(map(id, those))
    wrong = sum(id(event) in chosen for event in wrong_events(of))
    found = judge(those, [], float("inf"))
    p50, p99, worst = (found.wait_ms(share) for share in (0.5, 0.99, 1.0))
    counts = f"{len(those):>6}  {wrong:>5}  {found.no_verdict:>10}"
    return f"{what:<20} {begins:>6}  {counts}  {p50:>6.0f}  {p99:>6.0f}  {worst:>8.0f}"


def conclusion(total: Judgement, shared: bool) -> list[str]:
    kept = total.halted_runs - total.wrong_runs
    counts = [
        (f"{kept} of {total.halted_runs}", "halted runs were answered `halt` from then on"),
        (f"{total.lost} of {total.accepted}", "accepted lifecycle events were lost"),
        (str(total.delivered_again), "lifecycle events came twice, and said so"),
        (str(total.twice), "events had their hooks run twice"),
        (str(total.first_failed), "events needed another try of the host"),
    ]
    if total.unstored is not None:
        counts.append((str(total.unstored), "halts were answered before the store had them"))
    lines = [f"{count:>10}  {what}" for count, what in counts]
    if total.wrong and not shared:
        lines += ["", "Nodes do not share halts here: a run that moves is answered by a node that does"]
        lines += ["not know of its halt."]
    return lines
