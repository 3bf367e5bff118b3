"""What hosts saw, and what is wrong with it.

A halt is a flag that does not go down, so a history is right exactly if no answer other than `halt` belongs to an event
that began after a halt of its run had been received. That is the whole check, whatever order events overlapped in.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Event:
    run: str
    id: str
    # Nobody waits for a lifecycle event: its answer says that it was accepted.
    lifecycle: bool = False
    # When it should have been sent, when it was first, and when its last answer came: seconds of one clock.
    due: float = 0.0
    sent: float = 0.0
    answered: float = 0.0
    # None: no answer after all tries.
    verdict: str | None = None
    node: str = ""
    # What became of the tries before the last, and of that one if it failed.
    failures: list[str] = field(default_factory=list)


@dataclass
class Judgement:
    events: int = 0
    halted_runs: int = 0
    wrong: int = 0
    # Those of the wrong ones that began after the fault was over.
    wrong_after: int = 0
    # Runs with a wrong answer: each further event of such a run is wrong, too.
    wrong_runs: int = 0
    no_verdict: int = 0
    # Events whose first try got no verdict: what a host without tries of its own would have seen.
    first_failed: int = 0
    # Answers that let something pass although no hook was asked.
    unasked: int = 0
    twice: int = 0
    accepted: int = 0
    lost: int = 0
    delivered_again: int = 0
    moved_runs: int = 0
    failures: Counter = field(default_factory=Counter)
    waits: list[float] = field(default_factory=list)

    def add(self, other: Judgement) -> None:
        for name, value in vars(other).items():
            if isinstance(value, (int, list)):
                setattr(self, name, getattr(self, name) + value)
        self.failures += other.failures

    def wait_ms(self, share: float) -> float:
        """The wait that this share of the events did not exceed."""
        ordered = sorted(self.waits)
        return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def judge(events: list[Event], asked: list[tuple[str, str]], over: float) -> Judgement:
    """`asked` has an entry for each time that hooks of an event began; `over` is when the fault had ended."""
    found = Judgement(events=len(events))
    begun = Counter(event for event, _ in asked)
    halted = first_halts(events)
    nodes: dict[str, set[str]] = {}
    wrong_runs: set[str] = set()
    found.halted_runs = len(halted)
    for event in events:
        found.failures.update(event.failures)
        found.first_failed += bool(event.failures)
        found.no_verdict += event.verdict is None
        times = begun[event.id]
        if event.lifecycle:
            accepted = event.verdict is not None
            found.accepted += accepted
            found.lost += accepted and times == 0
            found.delivered_again += times > 1
            continue
        found.twice += times > 1
        nodes.setdefault(event.run, set()).add(event.node)
        if event.verdict is None:
            continue
        found.unasked += times == 0 and event.verdict in ("proceed", "allow")
        found.waits.append(event.answered - event.due)
        if event.verdict != "halt" and event.sent > halted.get(event.run, float("inf")):
            found.wrong += 1
            wrong_runs.add(event.run)
            found.wrong_after += event.sent > over
    found.wrong_runs = len(wrong_runs)
    found.moved_runs = sum(len(seen - {""}) > 1 for seen in nodes.values())
    return found


def first_halts(events: list[Event]) -> dict[str, float]:
    """When the first halt of each run was received."""
    halted: dict[str, float] = {}
    for event in events:
        if event.verdict == "halt":
            halted[event.run] = min(event.answered, halted.get(event.run, float("inf")))
    return halted
