"""What nodes promise with `cluster.halts: strict`, asked of three of them in turn: as if there were one."""

from __future__ import annotations

import argparse
import http.client
import json
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import nats
from cluster import Cluster
from nodes import WORKSPACE, Node
from processes import wait_for

# How often hooks keep an agent from stopping before it may.
STOP_BLOCKS = 8
# How often the rule below lets a tool run.
COUNTED = 5
RUNS = 20
# The setting `cluster.stale_after`, in seconds.
STALE_AFTER = 2.0
# So long an answer of 503 is asked again.
GIVE_UP = 30.0

Asks = Callable[[int, str, str], str]


def run(options: argparse.Namespace) -> int:
    shape = replace(options.shape, nodes=3, store=nats.program(), halts="strict")
    with tempfile.TemporaryDirectory(prefix="hookyard-") as above:
        cluster = Cluster.make(Path(above) / "c", shape)
        try:
            for node in cluster.nodes:
                add_hooks(node, cluster.directory)
            cluster.start_stores()
            cluster.start_nodes()
            print("| promise | held | seen |\n| --- | --- | --- |")
            held = [told(*found) for found in checked(cluster)]
        finally:
            cluster.down()
    return 0 if all(held) else 1


def told(promise: str, held: bool, seen: str) -> bool:
    print(f"| {promise} | {'yes' if held else '**no**'} | {seen} |", flush=True)
    return held


def add_hooks(node: Node, log: Path) -> None:
    """One that runs once per run, a rule that counts, and one that is never content."""
    workspace = node.directory / "workspace"
    rule = {"type": "rule", "deny": f'run.count("call") > {COUNTED}', "reason": '"called too often"'}
    counting = {"name": "counting", "events": ["before_tool_dispatch"], "matcher": "^Count$", "handler": rule}
    node.add_hook(counting)
    once = {"type": "command", "command": f"cat >> {log}/once.log; echo >> {log}/once.log", "once": True}
    slow = {"type": "command", "command": f"echo >> {log}/begun.log; sleep 2", "once": True}
    never = {"type": "command", "command": """echo '{"decision": "block", "reason": "not yet"}'"""}
    tools = [{"matcher": "^Once$", "hooks": [once]}, {"matcher": "^SlowOnce$", "hooks": [slow]}]
    settings = {"hooks": {"PreToolUse": tools, "Stop": [{"hooks": [never]}]}}
    (workspace / ".codebuddy").mkdir(mode=0o700)
    (workspace / ".codebuddy/settings.json").write_text(json.dumps(settings))


def checked(cluster: Cluster) -> Iterator[tuple[str, bool, str]]:
    token = (cluster.directory / "token").read_text()

    def ask(number: int, run: str, tool: str) -> str:
        return verdict(cluster.nodes[number % len(cluster.nodes)], token, run, tool)

    for run in range(RUNS):
        for number in range(6):
            ask(number, f"once-{run}", "Once")
    lines = [json.loads(line) for line in (cluster.directory / "once.log").read_text().splitlines() if line]
    yield "a hook runs once per run", len(lines) == RUNS, f"{len(lines)} times in {RUNS} runs of 6 events"
    verdicts = [[ask(number + run, f"count-{run}", "Count") for number in range(COUNTED + 3)] for run in range(RUNS)]
    right = [["proceed"] * COUNTED + ["block"] * 3] * RUNS
    yield "rules count", verdicts == right, f"{sum(map(len, verdicts))} events, {sum(v != r for v, r in zip(verdicts, right))} runs wrong"
    stops = [ask(number, "stops", "") for number in range(STOP_BLOCKS + 1)]
    yield "an agent is let go in the end", stops == ["block"] * STOP_BLOCKS + ["proceed"], " ".join(stops)
    yield "agents are kept from stopping at two nodes at once", *native(cluster, token)
    yield "a run is cancelled at a node that does not know it", *cancelled(cluster, ask)
    yield "a halt holds once it is answered", *halts(ask)
    yield "a halt that a node has heard of is answered once all know it", *heard(cluster, ask)
    yield "so is one that a node has kept on its disk", *restored(cluster, ask)
    with ThreadPoolExecutor(24) as pool:
        raced = list(pool.map(lambda n: ask(n, f"race-{n // 8}", "Count"), range(8 * RUNS)))
    through = {raced[8 * run : 8 * run + 8].count("proceed") for run in range(RUNS)}
    seen = f"{', '.join(map(str, sorted(through)))} of 8 let through in {RUNS} runs"
    # One that got 503 may be counted all the same.
    yield "rules count events of one run at once", max(through) <= COUNTED, seen
    yield "what is counted while a node is away, it knows when it is back", *away(cluster, ask)
    yield "a hook that its node has not survived runs at another", *unfinished(cluster, ask)


def away(cluster: Cluster, ask: Asks) -> tuple[bool, str]:
    """Half is counted at a node that is killed, the rest at another one; then the first is asked again."""
    runs = [f"away-{run}" for run in range(RUNS)]
    for run in runs:
        for _ in range(COUNTED - 2):
            ask(0, run, "Count")
    kill(cluster.nodes[0])
    for run in runs:
        for _ in range(2):
            ask(1, run, "Count")
    cluster.start_node(cluster.nodes[0])
    cluster.wait_ready(cluster.nodes[0])
    wrong = sum(ask(0, run, "Count") != "block" for run in runs)
    return wrong == 0, f"{wrong} wrong of {RUNS}"


def unfinished(cluster: Cluster, ask: Asks) -> tuple[bool, str]:
    """A node is killed while its hook runs that runs once; another node is asked, and then both."""
    begun = cluster.directory / "begun.log"
    with ThreadPoolExecutor(1) as pool:
        broken_off = pool.submit(ask, 0, "unfinished", "SlowOnce")
        wait_for(begun.exists, "the hook to begin")
        kill(cluster.nodes[0])
        assert broken_off.exception(GIVE_UP) is not None, "an answer of a node that is dead"
    ask(1, "unfinished", "SlowOnce")
    cluster.start_node(cluster.nodes[0])
    cluster.wait_ready(cluster.nodes[0])
    for number in range(3):
        ask(number, "unfinished", "SlowOnce")
    times = len(begun.read_text())
    return times == 2, f"begun {times} times"


def native(cluster: Cluster, token: str) -> tuple[bool, str]:
    """Agents in their own format, which send no event again."""

    def stop(number: int) -> bytes:
        run = f"native-{number // 2}"
        body = {"hook_event_name": "Stop", "session_id": run, "cwd": "/nowhere", "stop_hook_active": False}
        headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
        headers |= {"x-hookyard-run": run, "x-hookyard-workspace": WORKSPACE}
        connection = http.client.HTTPConnection(cluster.nodes[number % 2].address, timeout=20)
        try:
            connection.request("POST", "/v1/events/claude", json.dumps(body), headers)
            return connection.getresponse().read()
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(stop, range(4 * RUNS)))
    let_go = [answer for answer in answers if json.loads(answer).get("decision") != "block"]
    return not let_go, f"{len(let_go)} of {len(answers)} let go; {let_go[:1]}"


def cancelled(cluster: Cluster, ask: Asks) -> tuple[bool, str]:
    found = []
    for number in range(3):
        run = f"cancelled-{number}"
        assert [ask(0, run, "Count") for _ in range(COUNTED + 1)][-1] == "block"
        status = cluster.nodes[2].cancel(run)
        found.append((status, ask(0, run, "Count")))
    return found == [(200, "proceed")] * 3, str(found)


def heard(cluster: Cluster, ask: Asks) -> tuple[bool, str]:
    """While the third node is stopped and takes itself for fresh, the second one hears of the first one's halt."""
    stopped = cluster.nodes[2]
    with ThreadPoolExecutor(1) as pool, held_up(stopped) as since:
        halting = pool.submit(ask, 0, "heard", "Bash")
        wait_for(lambda: ask(1, "heard", "Read") == "halt", "the second node to hear of the halt")
        after = time.monotonic() - since
        assert halting.result(GIVE_UP) == "halt"
    return after >= STALE_AFTER and ask(2, "heard", "Read") == "halt", f"after {after:.1f} s"


def restored(cluster: Cluster, ask: Asks) -> tuple[bool, str]:
    """A node is killed whose halt the store does not have, and starts while the third one is stopped."""
    first, _, stopped = cluster.nodes
    for store in cluster.stores:
        store.running.send(signal.SIGKILL)
        store.running.wait()
    asked = cluster.directory / "asked.log"
    events = len(asked.read_text())
    with ThreadPoolExecutor(1) as pool:
        halting = pool.submit(ask, 0, "restored", "Bash")
        wait_for(lambda: len(asked.read_text()) > events, "the hook to be asked")
        # Until it is on the disk.
        time.sleep(0.5)
        kill(first)
        assert halting.exception(GIVE_UP) is not None, "a halt that the store does not have was answered"
    cluster.start_stores()
    assert ask(1, "restored-not", "Read") == ask(2, "restored-not", "Read") == "proceed"
    with held_up(stopped) as since:
        cluster.start_node(first)
        cluster.wait_ready(first)
        assert ask(0, "restored", "Read") == "halt"
        after = time.monotonic() - since
    return after >= STALE_AFTER and ask(2, "restored", "Read") == "halt", f"after {after:.1f} s"


@contextmanager
def held_up(node: Node) -> Iterator[float]:
    """A node that is stopped meanwhile, and since when."""
    node.running.send(signal.SIGSTOP)
    try:
        yield time.monotonic()
    finally:
        node.running.send(signal.SIGCONT)


def kill(node: Node) -> None:
    node.running.send(signal.SIGKILL)
    wait_for(lambda: not node.running.alive(), f"{node.name} to end")


def halts(ask: Asks) -> tuple[bool, str]:
    """Asks the other nodes in the moment in which the halt is answered."""
    wrong = 0
    for number in range(5 * RUNS):
        assert ask(number, f"halt-{number}", "Bash") == "halt"
        wrong += sum(ask(number + other, f"halt-{number}", "Once") != "halt" for other in (1, 2))
    return wrong == 0, f"{wrong} wrong of {10 * RUNS}"


def verdict(node: Node, token: str, run: str, tool: str) -> str:
    """The verdict of an event; 503 is asked again, as the words of the answer have it."""
    body = {"session_id": run, "run_id": run, "workspace_id": WORKSPACE}
    if tool:
        body |= {"event": "before_tool_dispatch", "tool_name": tool, "tool_input": {"halt": tool == "Bash"}}
    else:
        body |= {"event": "agent_stopping"}
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json", "x-hookyard-run": run}
    end = time.monotonic() + GIVE_UP
    while time.monotonic() < end:
        connection = http.client.HTTPConnection(node.address, timeout=20)
        try:
            connection.request("POST", "/v1/events", json.dumps(body), headers)
            answer = connection.getresponse()
            told = json.loads(answer.read())
        finally:
            connection.close()
        if answer.status == 200:
            return told["verdict"]
        if answer.status != 503:
            raise RuntimeError(f"{node.name}: {answer.status} {told}")
        time.sleep(0.05)
    raise TimeoutError(f"{node.name} gives no verdict for {run}: {told}")
