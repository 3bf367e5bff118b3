"""Tables and JSON of what was counted."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict

from cluster import Shape
from faults import FAULTS
from hosts import Load
from rounds import Round, Summary

COLUMNS = (
    "fault", "rounds", "events", "wrong", "in runs, of those halted", "without verdict", "lost, of those accepted", "twice",
    "halts unstored", "p50 ms", "p99 ms", "worst ms",
)
# Only where they differ.
SHAPES = {
    "store": lambda shape: "none" if shape.store is None else f"nats, {shape.unsure if shape.halts == 'watch' else shape.halts}",
    "stick table": lambda shape: "yes" if shape.stick else "no",
    "balancer retries": lambda shape: "yes" if shape.retries else "no",
}


def told(shape: Shape) -> dict[str, str]:
    return {name: of(shape) for name, of in SHAPES.items()}


def cells(summary: Summary) -> list[str]:
    total = summary.total()
    if not summary.rounds:
        return [summary.fault, f"0, skipped: {summary.skipped}", *("–" for _ in COLUMNS[2:])]
    each = ", ".join(str(one.judgement.wrong) for one in summary.rounds)
    wrong = f"{total.wrong:,} ({each})" if 1 < len(summary.rounds) < 6 and total.wrong else f"{total.wrong:,}"
    unstored = "–" if total.unstored is None else f"{total.unstored:,}"
    waits = [f"{total.wait_ms(share):,.0f}" for share in (0.5, 0.99, 1.0)]
    return [
        summary.fault, str(len(summary.rounds)), f"{total.events:,}", wrong, f"{total.wrong_runs:,} of {total.halted_runs:,}",
        f"{total.no_verdict:,}", f"{total.lost:,} of {total.accepted:,}", f"{total.twice:,}", unstored, *waits,
    ]


def table(summaries: list[Summary]) -> str:
    """In Markdown."""
    differ = [name for name in SHAPES if len({told(summary.shape)[name] for summary in summaries}) > 1]
    head = [COLUMNS[0], *differ, *COLUMNS[1:]]
    rows = [head, ["---"] * len(head)]
    for summary in summaries:
        first, *rest = cells(summary)
        rows.append([first, *(told(summary.shape)[name] for name in differ), *rest])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def line(one: Round) -> str:
    found = one.judgement
    how = ", ".join(f"{name} {value}" for name, value in told(one.shape).items())
    failures = ", ".join(f"{count} × {what}" for what, count in found.failures.most_common(4)) or "none"
    odd = "".join(
        f", {name} {getattr(found, name)}" for name in ("unasked", "unfounded", "unheeded", "unmarked") if getattr(found, name)
    )
    return (
        f"{one.fault} ({how}, seed {one.seed}): {found.events} events, wrong {found.wrong} ({found.wrong_after} after it) in "
        f"{found.wrong_runs} of {found.halted_runs} halted runs, no verdict {found.no_verdict}, twice {found.twice}, "
        f"lost {found.lost} of {found.accepted}, again {found.delivered_again}{odd}, unstored {found.unstored}, "
        f"runs that moved {found.moved_runs}; "
        f"{found.wait_ms(0.5):.0f} / {found.wait_ms(0.99):.0f} / {found.wait_ms(1):.0f} ms; failed tries: {failures}; lasted {one.lasted:.1f} s"
    )


def machine() -> str:
    return f"{os.cpu_count()} processors, {platform.system()} {platform.release()}"


def as_json(summaries: list[Summary], load: Load) -> str:
    found = []
    for summary in summaries:
        for one in summary.rounds:
            judgement = asdict(one.judgement)
            judgement["failures"] = dict(one.judgement.failures)
            del judgement["waits"]
            judgement |= {f"wait_p{name}_ms": one.judgement.wait_ms(share) for name, share in SHARES}
            shape = {"nodes": one.shape.nodes, **told(one.shape)}
            found.append({**asdict(one), "shape": shape, "judgement": judgement, "what": FAULTS[one.fault].words})
    sums = [told(summary.shape) | dict(zip(COLUMNS, cells(summary))) for summary in summaries]
    return json.dumps({"machine": machine(), "load": asdict(load), "rounds": found, "sums": sums}, indent=1)


SHARES = (("50", 0.5), ("99", 0.99), ("100", 1.0))


