"""The commands of scripts/cluster."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import balancer
import capacity
import demo
import lifecycle
import nats
import promises
import refusals
import report
import stores
import throttled
from cluster import Cluster, Shape, answers
from faults import FAULTS
from hosts import Load
from network import Unavailable
from rounds import Summary, Task, played

ROOT = Path(__file__).resolve().parents[2]
# Where nodes keep halts unless told otherwise.
STORE = "nats"


def program(given: str | None) -> str:
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    for tried in [given] if given else [str(target / "release/hookyard"), shutil.which("hookyard")]:
        if tried and os.access(tried, os.X_OK):
            return str(Path(tried).resolve())
    raise balancer.Missing(f"{given or 'hookyard'} is no program: `cargo build --release --locked`, or --program FILE")


def up(options: argparse.Namespace) -> int:
    begin = time.monotonic()
    cluster = Cluster.make(options.directory, options.shape, options.port)
    try:
        cluster.up()
    except BaseException:
        cluster.down()
        raise
    halts = "halts in a store of three servers" if cluster.stores else "halts of each node alone"
    print(f"{len(cluster.nodes)} nodes behind http://{cluster.address}, {halts}, in {time.monotonic() - begin:.1f} s")
    print(f"token: {cluster.directory / 'token'}; workspace_id: shop")
    return show(cluster)


def down(options: argparse.Namespace) -> int:
    Cluster.read(options.directory).down()
    return 0


def status(options: argparse.Namespace) -> int:
    return show(Cluster.read(options.directory))


def show(cluster: Cluster) -> int:
    """Fails if something is not as it should be."""
    leader = stores.leader(cluster.stores)
    lines = [(node, node.address, node.ready, "") for node in cluster.nodes]
    lines += [(each, each.address, partial(answers, each.address), "") for each in cluster.balancers]
    for store in cluster.stores:
        lines.append((store, store.ports.clients, store.ready, ", leads the halts" if store is leader else ""))
    fine = True
    for party, address, ready, more in lines:
        alive = party.process is not None and party.process.alive()
        state = "ready" if alive and ready() else "not ready" if alive else "has ended"
        fine = fine and state == "ready"
        print(f"{party.name:<10} {address:<22} {state:<10} process {party.process.pid if party.process else '-'}{more}")
    return 0 if fine else 1


def shapes(options: argparse.Namespace) -> list[Shape]:
    if options.command != "check":
        return [replace(options.shape, store=nats.program() if options.store == "nats" else None)]
    both = {"both": (False, True), "on": (True,), "off": (False,)}
    kept = {"both": (None, "nats"), "nats": ("nats",), "none": (None,)}[options.store]
    server = nats.program() if "nats" in kept else None
    return [
        replace(options.shape, nodes=options.nodes, stick=stick, retries=again, store=store and server)
        for store in kept for stick in both[options.stick] for again in both[options.retries]
    ]


def check(options: argparse.Namespace) -> int:
    load = Load(options.seconds, rate=options.rate, runs=options.runs)
    kept = shapes(options)
    summaries = [Summary(name, shape) for name in chosen(options) for shape in kept if shape.store or not FAULTS[name].store]
    for summary in summaries:
        summary.skipped = FAULTS[summary.fault].impossible()
    possible = [number for number, summary in enumerate(summaries) if not summary.skipped]
    asked = [(number, options.seed + seed) for number in possible for seed in range(options.rounds)]
    tasks = [(number, (summaries[number].fault, summaries[number].shape, load, seed)) for number, seed in asked]
    for number, result in played(tasks, options.at_once):
        if isinstance(result, Unavailable):
            summaries[number].skipped = str(result)
            continue
        summaries[number].rounds.append(result)
        print(report.line(result), file=sys.stderr, flush=True)
    for summary in summaries:
        summary.rounds.sort(key=lambda one: one.seed)
        if summary.skipped:
            left = options.rounds - len(summary.rounds)
            print(f"{summary.fault}: {left} of {options.rounds} rounds skipped: {summary.skipped}", file=sys.stderr)
    print(report.as_json(summaries, load) if options.json else report.table(summaries))
    broken = sum(summary.broken() for summary in summaries)
    return 1 if broken or any(summary.skipped for summary in summaries) else 0


def chosen(options: argparse.Namespace) -> list[str]:
    """All faults that can be with this store, unless some are named."""
    named = [name for names in options.faults or [] for name in names.split(",")]
    if unknown := [name for name in named if name not in FAULTS]:
        raise RuntimeError(f"there is no fault `{unknown[0]}`; there are {', '.join(FAULTS)}")
    without = [name for name, fault in FAULTS.items() if options.store != "none" or not fault.store]
    if needing := [name for name in named if name not in without]:
        raise RuntimeError(f"`{needing[0]}` needs a store: --store nats")
    return named or without


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/cluster", description="Nodes of hookyard behind HAProxy, on this machine.")
    parser.add_argument("--program", metavar="FILE", help="the hookyard to run; default: target/release/hookyard")
    default = Path(tempfile.gettempdir()) / f"hookyard-cluster-{os.getuid()}"
    parser.add_argument("--directory", type=Path, default=default, help=f"where the cluster lives (default: {default})")
    commands = parser.add_subparsers(dest="command", required=True)
    starting = commands.add_parser("up", help="start three nodes, a balancer and a store")
    starting.add_argument("--port", type=int, default=8780)
    commands.add_parser("down", help="end what `up` started, and nothing else")
    commands.add_parser("status", help="what runs; exit code 1 if something does not")
    checking = commands.add_parser("check", help="faults under load, each in new clusters, and what was wrong")
    names = "; ".join(f"{name}: {fault.words}" for name, fault in FAULTS.items())
    checking.add_argument("--faults", "--fault", action="append", metavar="NAME,…", help=f"only these. {names}")
    checking.add_argument("--rounds", type=int, default=3)
    checking.add_argument("--seed", type=int, default=1)
    at_once = {"type": int, "choices": range(1, 17), "default": 1, "metavar": "N"}
    checking.add_argument("--at-once", **at_once, help="so many clusters at a time (default: 1)")
    checking.add_argument("--stick", choices=("on", "off", "both"), default="on", help="the balancer's stick table")
    checking.add_argument("--retries", choices=("on", "off", "both"), default="on", help="the balancer's own retries")
    checking.add_argument("--nodes", type=int, choices=(1, 2, 3), default=3)
    checking.add_argument("--json", action="store_true")
    showing = commands.add_parser("demo", help="a node, the store's leader and another node are taken away, as a page")
    showing.add_argument("--seed", type=int, default=1)
    for command in (checking, showing):
        command.add_argument("--seconds", type=float, default=Load.seconds if command is checking else demo.SECONDS)
        command.add_argument("--rate", type=int, default=Load.rate, help="events per second")
        command.add_argument("--runs", type=int, default=Load.runs)
    commands.add_parser("refusals", help="what a node does with servers that it must not take for a store")
    commands.add_parser("promises", help="what three strict nodes promise: hooks that run once, counters, stops, halts")
    queued = commands.add_parser("lifecycle", help="lifecycle events through the queue, while nodes, workers and the store are killed")
    queued.add_argument("--kills", type=int, default=10)
    queued.add_argument("--servers", type=int, choices=(1, 3), default=1, help="of the store (default: 1)")
    queued.add_argument("--store-too", action="store_true", help="kill the server of the store as well")
    queued.add_argument("--seed", type=int, default=1)
    measuring = commands.add_parser("capacity", help="processor time per event of balancer, nodes and hosts")
    measuring.add_argument("--seconds", type=float, default=5.0)
    measuring.add_argument("--connections", type=int, default=16)
    slow = commands.add_parser("throttled", help="what 1, 2, 4 and 8 nodes with a tenth of a processor each answer, and a simulation of more")
    slow.add_argument("--nodes", type=lambda text: [int(each) for each in text.split(",")], default=[1, 2, 4, 8], metavar="N,…")
    slow.add_argument("--seconds", type=float, default=8.0, help="for each rate that is tried (default: 8)")
    for command in (starting, checking, showing, measuring, slow):
        kinds = ("nats", "none", "both") if command is checking else ("nats", "none")
        where = f"where nodes keep halts: in a store, or each alone (default: {STORE})"
        command.add_argument("--store", choices=kinds, default=STORE, help=where)
        command.add_argument("--halts", choices=("watch", "strict"), default="watch", help="what nodes promise of halts")
        command.add_argument("--unsure", choices=("answer", "refuse"), default="answer", help="what nodes do without the store")
    return parser.parse_args()


def end(number: int, frame: object) -> None:
    """Ends as an error does, so that no process and no mount is left: a second signal does not disturb that."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(128 + number)


def main() -> int:
    signal.signal(signal.SIGTERM, end)
    options = arguments()
    commands = {"up": up, "down": down, "status": status, "check": check}
    commands |= {"demo": demo.run, "promises": promises.run, "refusals": refusals.run, "capacity": capacity.run}
    commands |= {"lifecycle": lifecycle.run, "throttled": throttled.run}
    try:
        if options.command not in ("down", "status"):
            options.program = program(options.program)
            promised = {"unsure": getattr(options, "unsure", "answer"), "halts": getattr(options, "halts", "watch")}
            options.shape = Shape(options.program, **promised)
            if options.command in ("up", "demo", "capacity", "throttled"):
                options.shape = shapes(options)[0]
        return commands[options.command](options)
    except FileExistsError:
        print(f"{options.directory} is there already: `scripts/cluster down` ends that cluster", file=sys.stderr)
    except FileNotFoundError as error:
        print(f"no cluster is there: {error.filename} does not exist", file=sys.stderr)
    except balancer.Missing as error:
        print(f"scripts/cluster: {error}", file=sys.stderr)
        # As scripts/test expects of what could not run.
        return 77
    except (Unavailable, PermissionError, RuntimeError, TimeoutError) as error:
        print(f"scripts/cluster: {error}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
