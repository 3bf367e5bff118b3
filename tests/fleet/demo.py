"""A demonstration: guards reach a fleet, edges break in four ways and are mended, and no verdict is lost."""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import database
import view
from faults import FAULTS
from fleet import STATE_EVERY, Edge, Fleet
from hosts import Hosts, ask
from processes import wait_for
from publisher import GUARDS, NAME, Publisher
from server import SHIPPED

# How long a fault is left alone: an edge is silent after three states that did not come.
FAULT_SECONDS = 4.0
# How long edges are without the sink.
SINK_SECONDS = 1.0
PATIENCE = 30
LOG_LINES = 10


class Demo:
    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.publisher = Publisher(fleet)
        self.begun = time.monotonic()
        self.wrong: list[str] = []

    def tell(self, text: str) -> None:
        when = f"{time.monotonic() - self.begun:6.1f} s  "
        print(textwrap.fill(text, view.WIDTH, initial_indent=when, subsequent_indent=" " * len(when)), flush=True)

    def expect(self, what: str, is_so: bool) -> None:
        if not is_so:
            self.wrong.append(what)
            print(f"NOT SO: {what}", flush=True)

    def table(self) -> dict[str, view.EdgeView]:
        views = view.read(self.fleet.store)
        names = [edge.name for edge in self.fleet.edges]
        print("\n".join(["", *view.table(views, names, self.publisher.last_version(), STATE_EVERY), ""]), flush=True)
        return views

    def wait_for_view(self, what: str, holds: Callable[[dict[str, view.EdgeView]], bool]) -> None:
        wait_for(lambda: time.sleep(0.1) or holds(view.read(self.fleet.store)), what, PATIENCE)

    def publish(self, edges: list[Edge]) -> int:
        version = self.publisher.publish()
        self.tell(f"{NAME} {version} is published, with a new guard `{GUARDS[version - 1][0]}`")
        self.wait_for_version(edges, version)
        self.tell(f"the sink heard of version {version} from {names(edges)}")
        return version

    def wait_for_version(self, edges: list[Edge], version: int) -> None:
        def all_there(views: dict[str, view.EdgeView]) -> bool:
            return all(edge.name in views and views[edge.name].state.version == version for edge in edges)

        self.wait_for_view(f"version {version} on {names(edges)}", all_there)

    def try_guards(self, hosts: Hosts, edges: list[Edge], version: int) -> None:
        """Asks each edge about what each guard of a version blocks, and about what none does."""
        for edge in edges:
            for guard, _, _, command in GUARDS[:version]:
                heard = hosts.note(ask(edge, command))
                self.expect(f"{guard} blocks `{command}` on {edge.name}", (heard.verdict, heard.by) == ("block", guard))
            heard = hosts.note(ask(edge, "ls"))
            self.expect(f"`ls` proceeds on {edge.name}", heard.verdict == "proceed")
        blocked = ", ".join(f"`{command}`" for *_, command in GUARDS[:version])
        self.tell(f"{names(edges)} {'block' if len(edges) > 1 else 'blocks'} {blocked}")

    def break_edge(self, edge: Edge, name: str) -> None:
        self.tell(f"{edge.name}: {FAULTS[name].words}")
        FAULTS[name].begins(self.fleet, edge)

    def mend(self, edge: Edge, name: str, how: str) -> None:
        FAULTS[name].ends(self.fleet, edge)
        self.tell(f"{edge.name}: {how}")


def names(edges: list[Edge]) -> str:
    return ", ".join(edge.name for edge in edges)


def run(options: argparse.Namespace) -> int:
    if options.database:
        # What is missing is said before anything is started.
        database.programs()
    with tempfile.TemporaryDirectory(prefix="hookyard-") as above:
        fleet = Fleet.make(Path(above) / "fleet", options.program)
        try:
            demo = Demo(fleet)
            play(demo)
            if options.database:
                load(demo)
        except (OSError, RuntimeError):
            # They are gone in a moment.
            show_logs(fleet)
            raise
        finally:
            fleet.down()
    return 1 if demo.wrong else 0


def show_logs(fleet: Fleet) -> None:
    """The ends of what the processes wrote, without what is as it should be."""
    for log in sorted(fleet.directory.glob("*/*log")):
        lines = [line for line in log.read_text(errors="replace").splitlines() if '"level":"INFO"' not in line][-LOG_LINES:]
        if lines:
            print(f"== {log.relative_to(fleet.directory)}", *lines, sep="\n", flush=True)


def play(demo: Demo) -> None:
    fleet = demo.fleet
    fleet.up(demo.publisher.make_key())
    first, second, third = fleet.edges
    demo.tell(f"a web server with TLS, a sink, and {names(fleet.edges)}, which have no bundle yet")
    with Hosts(fleet.edges) as hosts:
        for edge in fleet.edges:
            heard = hosts.note(ask(edge, "ls"))
            demo.expect(f"{edge.name} blocks all without its bundle", heard.verdict == "block")
        for _ in range(2):
            version = demo.publish(fleet.edges)
            demo.try_guards(hosts, fleet.edges, version)
        demo.table()
        break_three(demo, hosts, first, second, third)
        for edge, fault, how in (
            (first, "network", "its network is back"),
            (third, "key", "its settings have the right key again"),
        ):
            demo.mend(edge, fault, how)
        demo.wait_for_version(fleet.edges, 3)
        demo.try_guards(hosts, fleet.edges, 3)
        fleet.kill_sink()
        demo.tell("the sink is killed while lines come")
        time.sleep(SINK_SECONDS)
        fleet.start_sink()
        demo.tell("the sink is back")
        hosts.stop()
        settle(demo, hosts)
    judge(demo, hosts, demo.table())


def break_three(demo: Demo, hosts: Hosts, first: Edge, second: Edge, third: Edge) -> None:
    """Each in another way; a new version meanwhile reaches the one that can be reached."""
    for edge, fault in ((first, "network"), (second, "tamper"), (third, "kill")):
        demo.break_edge(edge, fault)
    heard = hosts.note(ask(second, "ls"))
    demo.expect("a changed copy blocks all", heard.verdict == "block")
    heard = hosts.note(ask(first, "git push --force"))
    demo.expect("a guard blocks without a network", (heard.verdict, heard.by) == ("block", "no-force"))
    time.sleep(FAULT_SECONDS)
    views = demo.table()
    now = time.time()
    for edge in (first, third):
        demo.expect(f"{edge.name} is seen to be silent", "silent" in " ".join(views[edge.name].wrong(now, 2, STATE_EVERY)))
    said = " ".join(views[second.name].wrong(now, 2, STATE_EVERY))
    demo.expect("what somebody changed in a copy is seen", "somebody changed its copy" in said)
    demo.mend(second, "tamper", "`hookyard reload` unpacks the copy again")
    demo.break_edge(third, "key")
    heard = hosts.note(ask(third, "ls"))
    demo.expect("nothing passes with a key that has signed nothing", heard.verdict == "block")
    demo.publish([second])
    demo.try_guards(hosts, [second], 3)
    demo.wait_for_view("the state of the edge with the wrong key", lambda views: views[third.name].state.standing != "current")
    views = demo.table()
    demo.expect("the wrong key is seen", (views[third.name].state.version, views[third.name].state.standing) == (None, "unusable"))
    demo.expect("the edge without network is seen with what it had", views[first.name].state.version == 2)


def settle(demo: Demo, hosts: Hosts) -> None:
    """Until the sink has what the hosts heard, and the edges have told it that hardly a line waits."""
    wanted = {heard.decision for heard in hosts.heard}
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        views = view.read(demo.fleet.store).values()
        if wanted <= {decision for one in views for decision in one.decisions} and all(one.state.waiting < 3 for one in views):
            return
        time.sleep(0.2)


def panels() -> list[tuple[str, str]]:
    """The queries of the dashboard, with what Grafana puts for its macro."""
    found = json.loads((SHIPPED / "dashboard.json").read_text())["panels"]
    during = r"\1 between now() - interval '1 hour' and now() + interval '1 hour'"
    return [
        (panel["title"], re.sub(r"\$__timeFilter\((\w+)\)", during, target["rawSql"]))
        for panel in found
        for target in panel["targets"]
    ]


def load(demo: Demo) -> None:
    """What the database says must be what the files of the sink do."""
    with database.Database() as made:
        made.load(demo.fleet.store, at_once=2)
        for edge in demo.fleet.edges:
            # Each ships its last lines, so that nothing comes while the two sides are compared.
            demo.fleet.stop(edge)
        made.load(demo.fleet.store, at_once=3)
        rows = made.rows("select node, version, hooks, broken, failed_open, verdicts from hookyard.edges")
        found = {node: numbers for node, *numbers in rows}
        views = view.read(demo.fleet.store)
        for name, one in views.items():
            wanted = [one.state.version, one.state.hooks, one.state.broken, one.state.failed_open, one.verdicts]
            demo.expect(f"PostgreSQL has {wanted} of {name}, not {found.get(name)}", found.get(name) == list(map(str, wanted)))
        for title, query in panels():
            demo.expect(f"the panel `{title}` has something to show", bool(made.rows(query)))
        [[lines, size]] = made.rows("select count(*), pg_total_relation_size('hookyard.lines') from hookyard.lines")
        demo.expect("PostgreSQL has each line once", int(lines) == sum(one.lines for one in views.values()))
        print(f"{int(size) / int(lines):>8.0f}  bytes a line in PostgreSQL with indexes; its view says the same")


def judge(demo: Demo, hosts: Hosts, views: dict[str, view.EdgeView]) -> None:
    received = {decision for one in views.values() for decision in one.decisions}
    lost = {heard.decision for heard in hosts.heard} - received
    twice, again = sum(one.twice for one in views.values()), sum(one.again for one in views.values())
    verdicts, lines = sum(one.verdicts for one in views.values()), sum(one.lines for one in views.values())
    size, wire = sum(one.bytes for one in views.values()), sum(one.wire for one in views.values())
    unheard = verdicts - len(received & {heard.decision for heard in hosts.heard})
    print(f"{len(hosts.heard):>8}  verdicts that hosts heard; {hosts.unanswered} events met an edge that was away")
    print(f"{verdicts:>8}  verdicts at the sink; {unheard} of them no host heard")
    print(f"{len(lost):>8}  lost")
    print(f"{twice:>8}  twice at the sink; it dropped {again} lines that came a second time")
    print(f"{size / lines:>8.0f}  bytes a line on disk, {wire / lines:.0f} on the way; {lines} lines, states among them")
    demo.expect("every verdict that a host heard is at the sink", not lost)
    demo.expect("hosts heard of verdicts on every edge", {heard.edge for heard in hosts.heard} == set(views))
    demo.expect("every line can be read", not any(one.unreadable for one in views.values()))
