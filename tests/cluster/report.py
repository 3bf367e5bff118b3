"""Tables and JSON of what was counted."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict

from faults import FAULTS
from hosts import Load
from rounds import Round, Summary

COLUMNS = (
    "fault", "stick table", "balancer retries", "events", "wrong", "after it", "wrong runs", "halted runs", "first try failed",
    "no verdict", "unasked", "hooks twice", "accepted", "lost", "delivered again", "p50 ms", "p99 ms", "longest ms",
)


def cells(summary: Summary) -> list[str]:
    total = summary.total()
    each = ", ".join(str(one.judgement.wrong) for one in summary.rounds)
    wrong = f"{total.wrong} ({each})" if len(summary.rounds) > 1 and total.wrong else str(total.wrong)
    numbers = (
        total.first_failed, total.no_verdict, total.unasked, total.twice, total.accepted, total.lost, total.delivered_again,
    )
    waits = [f"{total.wait_ms(share):.0f}" for share in (0.5, 0.99, 1.0)]
    return [
        summary.fault, "yes" if summary.stick else "no", "yes" if summary.retries else "no", str(total.events), wrong,
        str(total.wrong_after), str(total.wrong_runs), str(total.halted_runs), *map(str, numbers), *waits,
    ]


def table(summaries: list[Summary]) -> str:
    """In Markdown."""
    rows = [COLUMNS, ["---"] * len(COLUMNS), *map(cells, summaries)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def line(one: Round) -> str:
    found = one.judgement
    how = f"stick table {'on' if one.stick else 'off'}, retries {'on' if one.retries else 'off'}, seed {one.seed}"
    failures = ", ".join(f"{count} × {what}" for what, count in found.failures.most_common(4)) or "none"
    return (
        f"{one.fault} ({how}): {found.events} events, wrong {found.wrong} ({found.wrong_after} after it) in {found.wrong_runs} of "
        f"{found.halted_runs} halted runs, "
        f"no verdict {found.no_verdict}, unasked {found.unasked}, twice {found.twice}, lost {found.lost} of {found.accepted}, "
        f"runs that moved {found.moved_runs}; failed tries: {failures}; lasted {one.lasted:.1f} s"
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
            found.append({**asdict(one), "judgement": judgement, "what": FAULTS[one.fault].words})
    sums = [dict(zip(COLUMNS, cells(summary))) for summary in summaries]
    return json.dumps({"machine": machine(), "load": asdict(load), "rounds": found, "sums": sums}, indent=1)


SHARES = (("50", 0.5), ("99", 0.99), ("100", 1.0))


def page(summary: Summary, told: list[str], load: Load) -> str:
    """What the demonstration prints."""
    total = summary.total()
    rows = [
        ("events", total.events, f"of {load.runs} runs, {load.rate} a second, and {total.accepted} lifecycle events"),
        ("wrong", total.wrong, "answers other than `halt` to a run that had been halted"),
        ("without verdict", total.no_verdict, f"{total.first_failed} needed another try of the host"),
        ("twice", total.twice, "events whose hooks began twice"),
        ("lost", total.lost, f"lifecycle events accepted and not delivered; {total.delivered_again} delivered again"),
    ]
    lines = [f"{name:>16}  {number:>6}  {what}" for name, number, what in rows]
    waits = f"a host waited {total.wait_ms(0.5):.0f} ms (median), {total.wait_ms(1.0):.0f} ms at most"
    note = "" if not total.wrong else (
        f"\nNodes do not share halts: {total.wrong_runs} of {total.halted_runs} halted runs were answered by a node that did not\n"
        "know of it. A host that ends a run at its halt does not notice; the hosts here go on, to see it. See docs/scale.md.\n"
    )
    return "\n".join([*told, "", *lines, "", waits, note])
