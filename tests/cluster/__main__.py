"""The commands of scripts/cluster."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import balancer
import capacity
import demo
import report
from cluster import Cluster, Shape
from faults import FAULTS
from hosts import Load
from network import Unavailable
from rounds import Summary, play

ROOT = Path(__file__).resolve().parents[2]


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
    print(f"{len(cluster.nodes)} nodes behind http://{cluster.address}, in {time.monotonic() - begin:.1f} s")
    print(f"token: {cluster.directory / 'token'}; workspace_id: shop")
    return show(cluster)


def down(options: argparse.Namespace) -> int:
    Cluster.read(options.directory).down()
    return 0


def status(options: argparse.Namespace) -> int:
    return show(Cluster.read(options.directory))


def show(cluster: Cluster) -> int:
    """Fails if something is not as it should be."""
    fine = True
    for node in cluster.nodes:
        alive = node.process is not None and node.process.alive()
        state = "ready" if alive and node.ready() else "not ready" if alive else "has ended"
        fine = fine and state == "ready"
        print(f"{node.name:<10} {node.address:<22} {state:<10} process {node.process.pid if node.process else '-'}")
    alive = cluster.balancer is not None and cluster.balancer.alive()
    pid = cluster.balancer.pid if cluster.balancer else "-"
    print(f"{'balancer':<10} {cluster.address:<22} {'runs' if alive else 'has ended':<10} process {pid}")
    return 0 if fine and alive else 1


def shapes(options: argparse.Namespace) -> list[Shape]:
    sticks = {"both": (False, True), "on": (True,), "off": (False,)}[options.stick]
    retries = {"both": (False, True), "on": (True,), "off": (False,)}[options.retries]
    return [Shape(options.program, options.nodes, stick=stick, retries=again) for stick in sticks for again in retries]


def check(options: argparse.Namespace) -> int:
    load = Load(options.seconds, options.rate, options.runs)
    summaries, left_out = [], []
    for name in options.fault or FAULTS:
        if reason := FAULTS[name].impossible():
            left_out.append(f"{name} was left out: {reason}")
            continue
        for shape in shapes(options):
            summary = Summary(name, shape.stick, shape.retries)
            summaries.append(summary)
            for number in range(options.rounds):
                summary.rounds.append(play(name, shape, load, options.seed + number))
                print(report.line(summary.rounds[-1]), file=sys.stderr, flush=True)
    print(report.as_json(summaries, load) if options.json else report.table(summaries))
    for text in left_out:
        print(text, file=sys.stderr)
    # What is promised of every shape; how often a halt is wrong is what the table is for.
    totals = [summary.total() for summary in summaries]
    broken = sum(total.lost + total.unasked for total in totals) + sum(s.total().wrong for s in summaries if s.fault == "none")
    return 1 if broken or left_out else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/cluster", description="Nodes of hookyard behind HAProxy, on this machine.")
    parser.add_argument("--program", metavar="FILE", help="the hookyard to run; default: target/release/hookyard")
    default = Path(tempfile.gettempdir()) / f"hookyard-cluster-{os.getuid()}"
    parser.add_argument("--directory", type=Path, default=default, help=f"where the cluster lives (default: {default})")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("up", help="start three nodes and a balancer").add_argument("--port", type=int, default=8780)
    commands.add_parser("down", help="end what `up` started, and nothing else")
    commands.add_parser("status", help="what runs; exit code 1 if something does not")
    checking = commands.add_parser("check", help="faults under load, each in new clusters, and what was wrong")
    names = "; ".join(f"{name}: {fault.words}" for name, fault in FAULTS.items())
    checking.add_argument("--fault", action="append", choices=FAULTS, help=f"this one; can be repeated. {names}")
    checking.add_argument("--rounds", type=int, default=3)
    checking.add_argument("--seed", type=int, default=1)
    checking.add_argument("--stick", choices=("on", "off", "both"), default="on", help="the balancer's stick table")
    checking.add_argument("--retries", choices=("on", "off", "both"), default="on", help="the balancer's own retries")
    checking.add_argument("--nodes", type=int, choices=(1, 2, 3), default=3)
    checking.add_argument("--json", action="store_true")
    showing = commands.add_parser("demo", help="a node is killed, a node is drained, and a page says what became of it")
    showing.add_argument("--seed", type=int, default=1)
    for command in (checking, showing):
        command.add_argument("--seconds", type=float, default=Load.seconds if command is checking else 20.0)
        command.add_argument("--rate", type=int, default=Load.rate, help="events per second")
        command.add_argument("--runs", type=int, default=Load.runs)
    measuring = commands.add_parser("capacity", help="processor time per event of balancer, nodes and hosts")
    measuring.add_argument("--seconds", type=float, default=5.0)
    measuring.add_argument("--connections", type=int, default=16)
    return parser.parse_args()


def end(number: int, frame: object) -> None:
    """Ends as an error does, so that no process and no mount is left."""
    sys.exit(128 + number)


def main() -> int:
    signal.signal(signal.SIGTERM, end)
    options = arguments()
    commands = {"up": up, "down": down, "status": status, "check": check, "demo": demo.run, "capacity": capacity.run}
    try:
        if options.command not in ("down", "status"):
            options.program = program(options.program)
            options.shape = Shape(options.program)
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
