"""Servers that nodes have to refuse as a store: what a node does when it is started with them, and what `serve --check` says."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import nats
from cluster import Cluster, Shape
from nodes import Node

# So long a node gets to be ready by mistake.
SECONDS = 10.0


def run(options: argparse.Namespace) -> int:
    print("| servers | the node | its words | `serve --check` |\n| --- | --- | --- | --- |")
    refused = [tried(what, shape) for what, shape in unfit(options.shape)]
    return 0 if all(refused) else 1


def unfit(shape: Shape) -> Iterator[tuple[str, Shape]]:
    for lazy, what in ((3, "write to their disks later (`sync_interval` left out)"), (1, "do so, one of them")):
        yield what, replace(shape, nodes=1, store=nats.program(), lazy=lazy)
    for replicas in (3, 1):
        what = f"are three, and no cluster, with `cluster.replicas: {replicas}`"
        yield what, replace(shape, nodes=1, store=nats.program(), apart=True, replicas=replicas)
    old = nats.installed(nats.TOO_OLD)
    numbers = ".".join(map(str, nats.version(old)))
    yield f"are nats-server {numbers}", replace(shape, nodes=1, store=old)


def tried(what: str, shape: Shape) -> bool:
    with tempfile.TemporaryDirectory(prefix="hookyard-") as above:
        cluster = Cluster.make(Path(above) / "c", shape)
        try:
            cluster.start_stores()
            [node] = cluster.nodes
            cluster.start_node(node)
            became = outcome(node)
            checked = cluster.check_node(node)
            is_refused = checked.returncode == 1
            found = "refuses" if is_refused else f"**{checked.returncode}**: {checked.stderr or checked.stdout}"
            print(f"| {what} | {became} | {last_words(node)} | {found} |", flush=True)
        finally:
            cluster.down()
    return became != "is ready" and is_refused


def outcome(node: Node) -> str:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        if not node.running.alive():
            return "ends"
        if node.ready():
            return "is ready"
        time.sleep(0.05)
    return "is not ready"


def last_words(node: Node) -> str:
    """The last line of its log that is more than a remark."""
    for line in reversed(node.log.read_text(errors="replace").splitlines()):
        try:
            told = json.loads(line)
        except ValueError:
            return line
        if told.get("level") in ("ERROR", "WARN"):
            return str(told.get("message", line)).replace("|", "\\|")
    return "–"
