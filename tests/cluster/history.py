"""What hosts saw, and what is wrong with it.

A halt is a flag that does not go down, so a history keeps every halt exactly if no answer other than `halt` belongs to an event
that began after a halt of its run had been received. That is the whole check, whatever order events overlapped in.

Nodes that halted everything would keep every halt, and nodes that answered nothing. So these are counted as well: halts that
nobody asked for, guards that were not heeded or not asked, and events without a verdict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

NEVER = float("inf")
# Verdicts with which an agent goes on.
PASSES = ("proceed", "allow")


def percentile(waits: Sequence[float], share: float) -> float:
    """The wait that this share of them does not exceed; there must be one at least."""
    ordered = sorted(waits)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


@dataclass
class Event:
    run: str
    id: str
    # Nobody waits for a lifecycle event: its answer says that it was accepted.
    lifecycle: bool = False
    # The guard halts its run.
    halts: bool = False
    # When it should have been sent, when it was first, and when its last answer came or it was given up: seconds of one clock.
    due: float = 0.0
    sent: float = 0.0
    answered: float = 0.0
    # None: no answer after all tries.
    verdict: str | None = None
    node: str = ""
    # What became of the tries before the last, and of that one if it failed.
    failures: list[str] = field(default_factory=list)


# An event that hooks were asked about, the number of its delivery, and the node.
Asked = tuple[str, str, str]


@dataclass
class Judgement:
    events: int = 0
    halted_runs: int = 0
    wrong: int = 0
    # Those of the wrong ones that began after the fault was over.
    wrong_after: int = 0
    # Runs with a wrong answer: each further event of such a run is wrong, too.
    wrong_runs: int = 0
    # Halts of runs that no guard had halted.
    unfounded: int = 0
    # Events that passed although their guard, which was asked, halted the run.
    unheeded: int = 0
    no_verdict: int = 0
    # Events whose first try got no verdict: what a host without tries of its own would have seen.
    first_failed: int = 0
    # Answers that let something pass although no hook was asked.
    unasked: int = 0
    twice: int = 0
    accepted: int = 0
    lost: int = 0
    delivered_again: int = 0
    # Those of them whose hooks could not tell, because a node gave two deliveries the same number.
    unmarked: int = 0
    moved_runs: int = 0
    # Halts that nodes answered before anything had them that outlasts the node, as far as nodes lived to say so. None: they
    # count no such thing.
    unstored: int | None = None
    failures: Counter = field(default_factory=Counter)
    # Of events for whose verdict a host waits, also in vain.
    waits: list[float] = field(default_factory=list)

    def add(self, other: Judgement) -> None:
        for name, value in vars(other).items():
            mine = getattr(self, name)
            if isinstance(value, Counter):
                mine.update(value)
            elif value is not None:
                setattr(self, name, value if mine is None else mine + value)

    def wait_ms(self, share: float) -> float:
        """The wait that this share of the events did not exceed."""
        return 1000 * percentile(self.waits, share) if self.waits else 0.0

    def broken(self) -> int:
        """What no fault is an excuse for, halts and lost lifecycle events aside."""
        return self.unasked + self.unfounded + self.unheeded + self.unmarked


def judge(events: list[Event], asked: list[Asked], over: float) -> Judgement:
    """`asked` has an entry for each time that hooks of an event began; `over` is when the fault had ended."""
    found = Judgement(events=len(events))
    begun = Counter(event for event, _, _ in asked)
    alike = {event for (event, _, _), times in Counter(asked).items() if times > 1}
    wrong = wrong_events(events)
    halting = first_halting(events)
    nodes: dict[str, set[str]] = {}
    found.halted_runs = len(first_halts(events))
    found.wrong = len(wrong)
    found.wrong_after = sum(event.sent > over for event in wrong)
    found.wrong_runs = len({event.run for event in wrong})
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
            # What a host sends again may be accepted again, as another event.
            found.unmarked += event.id in alike and not event.failures
            continue
        found.twice += times > 1
        found.waits.append(event.answered - event.due)
        if event.verdict is None:
            continue
        nodes.setdefault(event.run, set()).add(event.node)
        passes = event.verdict in PASSES
        found.unasked += times == 0 and passes
        found.unheeded += event.halts and times > 0 and passes
        found.unfounded += event.verdict == "halt" and event.answered < halting.get(event.run, NEVER)
    found.moved_runs = sum(len(seen - {""}) > 1 for seen in nodes.values())
    return found


def wrong_events(events: list[Event]) -> list[Event]:
    """Those with another verdict than `halt` that began after a halt of their run had been received."""
    halted = first_halts(events)
    judged = (event for event in events if event.verdict is not None and not event.lifecycle)
    return [event for event in judged if event.verdict != "halt" and event.sent > halted.get(event.run, NEVER)]


def first_halts(events: list[Event]) -> dict[str, float]:
    """When the first halt of each run was received."""
    halted: dict[str, float] = {}
    for event in events:
        if event.verdict == "halt" and not event.lifecycle:
            halted[event.run] = min(event.answered, halted.get(event.run, NEVER))
    return halted


def first_halting(events: list[Event]) -> dict[str, float]:
    """When the first event of each run began whose guard halts the run: there was no reason for a halt before."""
    began: dict[str, float] = {}
    for event in events:
        if event.halts:
            began[event.run] = min(event.sent, began.get(event.run, NEVER))
    return began
