"""A demonstration: runs go on while a node is killed and another one is drained."""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
import time
from pathlib import Path

import faults
import hosts
import report
from cluster import Cluster
from history import judge
from rounds import Round, Summary, settle


def run(options: argparse.Namespace) -> int:
    load = hosts.Load(options.seconds, options.rate, options.runs)
    with tempfile.TemporaryDirectory(prefix="hookyard-") as above:
        cluster = Cluster.make(Path(above) / "c", options.shape)
        try:
            cluster.up()
            one, told = asyncio.run(_run(cluster, load, options.seed))
        finally:
            cluster.down()
    summary = Summary("demo", options.shape.stick, options.shape.retries, [one])
    print(report.page(summary, told, load))
    return 1 if one.judgement.lost or one.judgement.no_verdict else 0


async def _run(cluster: Cluster, load: hosts.Load, seed: int) -> tuple[Round, list[str]]:
    killed, drained = random.Random(seed).sample(cluster.nodes, 2)
    place = (cluster.address, cluster.token())
    begin = time.monotonic()
    told = [f"{len(cluster.nodes)} nodes behind a balancer, {load.seconds:.0f} s of load"]

    def tell(what: str) -> None:
        told.append(f"{time.monotonic() - begin:8.1f} s  {what}")

    driving = asyncio.create_task(hosts.drive(load, seed, place))
    await asyncio.sleep(load.seconds * 0.2)
    tell(f"{killed.name} is killed")
    await faults.kill(cluster, killed)
    tell(f"{killed.name} is back")
    await asyncio.sleep(load.seconds * 0.1)
    tell(f"{drained.name} is drained")
    await faults.drain(cluster, drained)
    over = time.monotonic()
    tell(f"{drained.name} is back")
    events = await driving
    await settle(cluster, events)
    found = judge(events, cluster.asked(), over)
    return Round("demo", cluster.shape.stick, cluster.shape.retries, seed, found, 0.0, over - begin), told
