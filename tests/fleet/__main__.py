"""The commands of scripts/fleet."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Processes are started and ended as those of a cluster are.
sys.path.append(str(ROOT / "tests/cluster"))

import demo  # noqa: E402
import faults  # noqa: E402
import view  # noqa: E402
from fleet import EDGES, STATE_EVERY, Fleet  # noqa: E402
from hosts import ask  # noqa: E402
from programs import Missing  # noqa: E402
from publisher import NAME, Publisher  # noqa: E402


def program(given: str | None) -> str:
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    for tried in [given] if given else [str(target / "release/hookyard"), shutil.which("hookyard")]:
        if tried and os.access(tried, os.X_OK) and os.path.isfile(tried):
            return str(Path(tried).resolve())
    raise Missing(f"{given or 'hookyard'} is no program: `cargo build --release --locked`, or --program FILE")


def up(options: argparse.Namespace) -> int:
    begin = time.monotonic()
    fleet = Fleet.make(options.directory, program(options.program), options.port)
    try:
        fleet.up(Publisher(fleet).make_key())
    except BaseException:
        fleet.down()
        raise
    print(f"{fleet.url}, a sink, and {len(fleet.edges)} edges, in {time.monotonic() - begin:.1f} s")
    print(f"lines: {fleet.store}; certificates: {fleet.plane / 'ca.pem'}")
    return 0


def down(options: argparse.Namespace) -> int:
    Fleet.read(options.directory).down()
    return 0


def publish(options: argparse.Namespace) -> int:
    publisher = Publisher(Fleet.read(options.directory))
    print(f"{NAME} {publisher.publish()} is published at {publisher.fleet.url}")
    return 0


def break_edge(options: argparse.Namespace) -> int:
    fleet = Fleet.read(options.directory)
    faults.FAULTS[options.fault].begins(fleet, fleet.edge(options.edge))
    print(f"{options.edge}: {faults.FAULTS[options.fault].words}")
    return 0


def mend(options: argparse.Namespace) -> int:
    fleet = Fleet.read(options.directory)
    faults.mend(fleet, fleet.edge(options.edge))
    print(f"{options.edge} runs as it should")
    return 0


def ask_edge(options: argparse.Namespace) -> int:
    heard = ask(Fleet.read(options.directory).edge(options.edge), options.shell_command)
    print(f"{heard.verdict}{f' by {heard.by}' if heard.by else ''}, {heard.decision}")
    return 0


def status(options: argparse.Namespace) -> int:
    """Fails if something is not as it should be."""
    fleet = Fleet.read(options.directory)
    published = Publisher(fleet).last_version()
    views = view.read(fleet.store) if fleet.store.exists() else {}
    print("\n".join(view.table(views, list(EDGES), published, STATE_EVERY)))
    now = time.time()
    return 1 if any(name not in views or views[name].wrong(now, published, STATE_EVERY) for name in EDGES) else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/fleet", description="A control plane and three edges on this machine.")
    parser.add_argument("--program", metavar="FILE", help="the hookyard to run; default: target/release/hookyard")
    default = Path(tempfile.gettempdir()) / f"hookyard-fleet-{os.getuid()}"
    parser.add_argument("--directory", type=Path, default=default, help=f"where the fleet lives (default: {default})")
    commands = parser.add_subparsers(dest="command", required=True)
    starting = commands.add_parser("up", help="start a web server, a sink and three edges")
    starting.add_argument("--port", type=int, default=8443, help="of the web server")
    commands.add_parser("down", help="end what `up` started, and nothing else")
    commands.add_parser("publish", help="publish the next version of the bundle")
    commands.add_parser("status", help="where each edge stands, as the sink knows; exit code 1 if something is wrong")
    asking = commands.add_parser("ask", help="ask an edge about a shell command of an agent")
    breaking = commands.add_parser("break", help="break an edge")
    mending = commands.add_parser("mend", help="mend an edge")
    for command in (asking, breaking, mending):
        command.add_argument("edge", choices=EDGES)
    asking.add_argument("shell_command", metavar="COMMAND")
    words = "; ".join(f"{name}: {fault.words}" for name, fault in faults.FAULTS.items())
    breaking.add_argument("fault", choices=faults.FAULTS, help=words)
    showing = commands.add_parser("demo", help="all of it in a minute, with a fleet of its own, as a page")
    showing.add_argument("--database", action="store_true", help="load the lines into a PostgreSQL of its own, and compare")
    return parser.parse_args()


def end(number: int, frame: object) -> None:
    """Ends as an error does, so that no process is left."""
    sys.exit(128 + number)


def demonstrate(options: argparse.Namespace) -> int:
    options.program = program(options.program)
    return demo.run(options)


def main() -> int:
    signal.signal(signal.SIGTERM, end)
    options = arguments()
    commands = {
        "up": up, "down": down, "publish": publish, "status": status, "ask": ask_edge, "break": break_edge, "mend": mend,
        "demo": demonstrate,
    }
    try:
        return commands[options.command](options)
    except FileExistsError:
        print(f"{options.directory} is there already: `scripts/fleet down` ends that fleet", file=sys.stderr)
    except FileNotFoundError as error:
        print(f"no fleet is there: {error.filename} does not exist", file=sys.stderr)
    except Missing as error:
        print(f"scripts/fleet: {error}", file=sys.stderr)
        # As scripts/test expects of what could not run.
        return 77
    except KeyboardInterrupt:
        return 130
    except (OSError, RuntimeError) as error:
        print(f"scripts/fleet: {error}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
