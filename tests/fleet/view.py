"""Where each edge stands, from what the sink has of it. No edge is asked."""

from __future__ import annotations

import json
import textwrap
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

# Hooks are shown that failed in so many of the last verdicts.
RECENT = 20
# An edge is silent after so many states that did not come.
SILENT = 3
COLUMNS = ("edge", "bundle", "hooks", "broken", "fail-opens", "waiting", "last seen", "verdicts")
ROW = "{:<8.8} {:<16.16} {:>5} {:>6} {:>10} {:>7} {:>11} {:>8}"
WIDTH, INDENT = 80, " " * 9


@dataclass(frozen=True)
class State:
    """What a line with the state of an edge says."""

    bundle: str | None = None
    version: int | None = None
    standing: str | None = None
    error: str | None = None
    hooks: int | None = None
    # Workspaces and hook files with errors, and required hooks that are missing.
    broken: int = 0
    failed_open: int | None = None
    # Lines that were not shipped yet, and those that no longer had room.
    waiting: int = 0
    dropped: int = 0
    # How often files of its verified copy were found changed since its start, and what last.
    copy_changes: int = 0
    copy_change: str | None = None
    started_at: float = 0.0

    @classmethod
    def of(cls, state: dict) -> State:
        """Raises an error where it is none."""
        bundle = state.get("bundle") or {}
        shipping = (state.get("audit") or {}).get("shipping") or {}
        return cls(
            bundle.get("name"),
            None if bundle.get("version") is None else int(bundle["version"]),
            bundle.get("standing"),
            bundle.get("error"),
            int(state["hooks"]),
            sum(len(state.get(key, [])) for key in ("broken", "not_loaded", "required_missing")),
            int(state["failed_open"]),
            int(shipping.get("waiting", 0)),
            int(shipping.get("dropped", 0)),
            int(bundle.get("copy_changes", 0)),
            bundle.get("last_copy_change"),
            float(state.get("started_at", 0)),
        )


@dataclass
class EdgeView:
    name: str
    # When its last batch came, and how old the oldest line in it was.
    seen: float | None = None
    delay: float = 0.0
    state: State = State()
    # How often each decision is there.
    decisions: Counter = field(default_factory=Counter)
    # When the last verdicts were, and how each of their hooks ended.
    recent: deque[tuple[float, list[tuple[str, str]]]] = field(default_factory=lambda: deque(maxlen=RECENT))
    # Lines that are not as an edge writes them.
    unreadable: int = 0
    # Lines that came again, and were dropped.
    again: int = 0
    lines: int = 0
    bytes: int = 0
    wire: int = 0

    @property
    def verdicts(self) -> int:
        return len(self.decisions)

    @property
    def twice(self) -> int:
        """Lines beyond the first of each verdict."""
        return self.decisions.total() - len(self.decisions)

    @property
    def failing(self) -> Counter:
        """The hooks that failed lately, and how; what was before the process of now is over."""
        ends = (end for when, ends in self.recent if when >= self.state.started_at for end in ends)
        return Counter(end for end in ends if end[1] != "completed")

    def add(self, line: bytes) -> None:
        self.lines += 1
        try:
            found = json.loads(line)
            if "state" in found:
                self.state = State.of(found["state"])
            elif "verdict" in found:
                ends = [(str(hook["hook"]), str(hook["ended"])) for hook in found.get("hooks", [])]
                self.recent.append((at(found), ends))
                self.decisions[str(found["decision_id"])] += 1
            else:
                self.unreadable += "denied" not in found
        except (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError):
            # One edge that writes nonsense must not hide the others.
            self.unreadable += 1

    def wrong(self, now: float, published: int, state_every: float) -> list[str]:
        """What somebody should look at."""
        if self.seen is None:
            return ["it has never been heard of"]
        found = []
        state = self.state
        if (silent := now - self.seen) > SILENT * state_every:
            found.append(f"silent for {silent:.0f} s: no line of it came")
        elif self.delay > SILENT * state_every:
            found.append(f"late: what it sent last had waited for {self.delay:.0f} s")
        if state.standing != "current":
            found.append(f"bundle {state.standing or 'not configured'}: {state.error or 'no reason'}")
        elif state.version is not None and state.version < published:
            found.append(f"behind: version {published} is published")
        elif state.error:
            found.append(f"bundle: {state.error}")
        if state.broken and state.standing == "current":
            found.append(f"broken or missing: {state.broken} workspaces, hook files or required hooks")
        if state.copy_changes:
            times = "once" if state.copy_changes == 1 else f"{state.copy_changes} times"
            found.append(f"somebody changed its copy of the bundle {times}: {state.copy_change or 'no reason'}")
        if state.dropped:
            found.append(f"{state.dropped} of its lines are lost: more waited than there was room for, or they could not be written")
        for (hook, ended), count in self.failing.most_common(2):
            found.append(f"hook {hook} ended as {ended} in {count} of its last {len(self.recent)} verdicts")
        if self.unreadable:
            found.append(f"{self.unreadable} of its lines are none of hookyard")
        return found


def read(store: Path) -> dict[str, EdgeView]:
    """All edges that the sink has heard of."""
    return {directory.name: _read_edge(directory) for directory in sorted(store.iterdir()) if directory.is_dir()}


def _read_edge(directory: Path) -> EdgeView:
    view = EdgeView(directory.name)
    for batches in sorted(directory.glob("*.batches")):
        begin = 0
        # First what counts, so that all of it is in the lines.
        entries = [json.loads(entry) for entry in whole_lines(batches.read_bytes())]
        data = batches.with_suffix(".ndjson").read_bytes()
        for entry in entries:
            lines = whole_lines(data[begin : entry["end"]])
            begin = entry["end"]
            view.again += entry["again"]
            view.wire += entry["wire"]
            view.seen = entry["at"]
            view.delay = entry["at"] - first_at(lines, entry["at"])
            for line in lines:
                view.add(line)
        view.bytes += begin
    return view


def whole_lines(data: bytes) -> list[bytes]:
    return data[: data.rfind(b"\n") + 1].split(b"\n")[:-1]


def first_at(lines: list[bytes], otherwise: float) -> float:
    try:
        return at(json.loads(lines[0]))
    except (IndexError, KeyError, TypeError, ValueError):
        return otherwise


def at(line: dict) -> float:
    return datetime.fromisoformat(line["at"]).timestamp()


def table(views: dict[str, EdgeView], names: list[str], published: int, state_every: float) -> list[str]:
    """A line for each edge, and one below it for each thing that is wrong."""
    now = time.time()
    lines = [ROW.format(*COLUMNS)]
    for name in names:
        view = views.get(name, EdgeView(name))
        state = view.state
        bundle = f"{state.bundle or '-'} {state.version or ''}".strip()
        seen = "never" if view.seen is None else f"{now - view.seen:.1f} s ago"
        hooks, opened = ("-" if value is None else value for value in (state.hooks, state.failed_open))
        lines.append(ROW.format(name, bundle, hooks, state.broken, opened, state.waiting, seen, view.verdicts))
        for text in view.wrong(now, published, state_every):
            more = INDENT + "  "
            lines += textwrap.wrap(text, WIDTH, initial_indent=INDENT, subsequent_indent=more, max_lines=3, placeholder=" …")
    return lines
