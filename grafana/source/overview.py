"""The overview: whether hooks do what they should, and which one does not."""

from .panels import (
    BLUE,
    CYAN,
    DARK_RED,
    GREEN,
    ORANGE,
    PALE_BLUE,
    PURPLE,
    RED,
    YELLOW,
    dashboard,
    lines,
    quantiles,
    ranking,
    row,
    stat,
    steps,
)
from .terms import (
    ENDED,
    EVENT,
    EVENTS,
    EXITS,
    FAILURES,
    GUARDED,
    HERE,
    INSTANCE,
    POOLS,
    RELOADS,
    RESTARTS,
    TO_HOOK,
    VERDICTS,
    WATCHED,
    by,
    each,
    grown,
    rate,
)


def late(labels, window):
    """The 95th percentile of what hooks take."""
    return f"histogram_quantile(0.95, sum by (le, hook) (rate(hookyard_hook_duration_seconds_bucket{{{labels}}}[{window}])))"


UNANSWERED = f"""sum(
    increase(hookyard_hook_fail_open_total{{{GUARDED}}}[$__range])
    or increase(hookyard_shed_total{{{HERE},where=~"admission|run"}}[$__range]))"""
ASKED = f"""sum(
    increase(hookyard_event_duration_seconds_count{{{GUARDED}}}[$__range])
    or increase(hookyard_shed_total{{{HERE},where=~"admission|run"}}[$__range]))"""


def burn(title, description, objective):
    """How fast an error budget goes, over short and long windows, with the factors that alerts have."""
    windows = {"5m": PALE_BLUE, "1h": BLUE, "6h": ORANGE, "3d": PURPLE}
    budget = {"answered": "0.001", "overhead": "0.01"}[objective]
    queries = [(f"max(job:hookyard_{objective}_bad:ratio_rate{window}) / {budget}", window) for window in windows]
    limits = steps(GREEN, (1, YELLOW), (6, ORANGE), (14.4, RED))
    return lines(title, description, "none", queries, colors=windows, limits=limits)


def overview():
    """Whether all is well, and where to look if not."""
    alarm = steps(GREEN, (1, RED))
    objectives = [
        stat(
            "Instances up",
            "How many hookyards answer Prometheus.",
            "none",
            f"count(hookyard_build_info{{{HERE}}})",
            steps(RED, (1, GREEN)),
            decimals=0,
            empty="none",
        ),
        stat(
            "Answered",
            """Of the events whose hooks can stop something, the share that got a definite verdict in time. Shed events and
            failures that were let pass are bad. The objective is 99.9 %.""",
            "percentunit",
            f"1 - clamp_max({UNANSWERED} / {ASKED}, 1)",
            steps(RED, (0.99, ORANGE), (0.999, GREEN)),
            decimals=2,
            empty="no events",
        ),
        stat(
            "Budget left, 30 days",
            """What is left of the 0.1 % of events that may go without a definite verdict in 30 days, over all instances. Below 0 the
            objective is missed. Comes from the recording rules.""",
            "percentunit",
            """1 - sum(sum_over_time(job:hookyard_answered_bad:rate5m[30d]))
            / sum(sum_over_time(job:hookyard_answered_all:rate5m[30d])) / 0.001""",
            steps(RED, (0, ORANGE), (0.25, GREEN)),
            decimals=0,
            empty="no events",
        ),
        stat(
            "Overhead ≤ 1 ms",
            """The share of events for which a host waited at most one millisecond longer than hooks ran. The objective is 99 %.""",
            "percentunit",
            f"""{grown("hookyard_overhead_duration_seconds_bucket", EVENT + ',le="0.001"')}
            / {grown("hookyard_overhead_duration_seconds_count", EVENT)}""",
            steps(RED, (0.95, ORANGE), (0.99, GREEN)),
            decimals=2,
            empty="no events",
        ),
        stat(
            "Fail-opens",
            "Failures of hooks that were let pass as if the hook had no opinion, over the time that is shown.",
            "short",
            grown("hookyard_hook_fail_open_total", EVENT),
            alarm,
            decimals=0,
            empty="0",
        ),
        stat(
            "Fail-closeds",
            "Failures of hooks that stopped an event or had a person asked, over the time that is shown.",
            "short",
            grown("hookyard_hook_fail_closed_total", EVENT),
            steps(GREEN, (1, ORANGE)),
            decimals=0,
            empty="0",
        ),
        stat(
            "Shed",
            "Work that was turned away for want of room or time, over the time that is shown.",
            "short",
            grown("hookyard_shed_total", HERE),
            alarm,
            decimals=0,
            empty="0",
        ),
        stat(
            "Hook files",
            "Whether anything was wrong with any workspace when it was last loaded.",
            "none",
            f"min(hookyard_config_last_reload_successful{{{HERE}}})",
            steps(RED, (1, GREEN)),
            words={"0": "broken", "1": "sound"},
            empty="none",
        ),
    ]
    budgets = [
        burn(
            "Burn rate: answered",
            """How many times faster than allowed the budget of unanswered events goes, over windows of different length. At 14.4 a
            month's budget is gone in two days. Comes from the recording rules, over all instances.""",
            "answered",
        ),
        burn(
            "Burn rate: overhead",
            """How many times faster than allowed the budget of events with an overhead beyond one millisecond goes, over windows of
            different length. Comes from the recording rules, over all instances.""",
            "overhead",
        ),
    ]
    traffic = [
        lines(
            "Events by verdict",
            "Events whose hooks can stop something, by what the host was told.",
            "eps",
            [by("hookyard_event_duration_seconds_count", GUARDED, "verdict")],
            colors=VERDICTS,
            stacked=True,
        ),
        lines(
            "Failed invocations",
            "Invocations of hooks that came to no answer, by how they ended.",
            "ops",
            [by("hookyard_hook_runs_total", f"{GUARDED},{FAILURES}", "ended")],
            colors=ENDED,
            stacked=True,
        ),
    ]
    waits = [
        quantiles(
            "Host wait",
            "How long hosts waited for the outcome of an event, hooks included.",
            f"hookyard_event_duration_seconds_bucket{{{GUARDED}}}",
        ),
        quantiles(
            "Overhead",
            "What of that is hookyard's own: the wait without the time that hooks ran. The line is the objective.",
            f"hookyard_overhead_duration_seconds_bucket{{{GUARDED}}}",
            limits=steps(GREEN, (0.001, RED)),
        ),
    ]
    lifecycle = [
        lines(
            "Events by kind",
            "Events whose hooks only watch.",
            "eps",
            [by("hookyard_event_duration_seconds_count", WATCHED, "event")],
            stacked=True,
        ),
        lines(
            "Failed invocations of watchers",
            "Invocations of watching hooks that came to no end of their own, by how they ended.",
            "ops",
            [by("hookyard_hook_runs_total", f"{WATCHED},{FAILURES}", "ended")],
            colors=ENDED,
            stacked=True,
        ),
        quantiles(
            "Time of watching hooks",
            "How long hooks took that only watch.",
            f"hookyard_hook_duration_seconds_bucket{{{WATCHED}}}",
        ),
    ]
    top = [
        [
            ranking(
                "Slowest",
                "The hooks with the highest 95th percentile of their time.",
                "s",
                late(EVENT, "$__range"),
                ORANGE,
                link=TO_HOOK,
            ),
            ranking(
                "Most time in all",
                "The hooks that ran longest, all their invocations together.",
                "s",
                grown("hookyard_hook_duration_seconds_sum", EVENT, "hook"),
                BLUE,
                link=TO_HOOK,
            ),
            ranking(
                "Busiest",
                "The hooks that ran most often.",
                "short",
                grown("hookyard_hook_runs_total", EVENT, "hook"),
                CYAN,
                link=TO_HOOK,
            ),
        ],
        [
            ranking(
                "Most failures",
                "The hooks that came to no answer most often.",
                "short",
                grown("hookyard_hook_runs_total", f"{EVENT},{FAILURES}", "hook"),
                RED,
                link=TO_HOOK,
            ),
            ranking(
                "Most blocks",
                "The hooks that blocked or halted most often.",
                "short",
                grown("hookyard_hook_verdicts_total", f'{EVENT},verdict=~"block|halt"', "hook"),
                PURPLE,
                link=TO_HOOK,
            ),
            ranking(
                "Most fail-opens",
                "The hooks whose failures were let pass most often.",
                "short",
                grown("hookyard_hook_fail_open_total", EVENT, "hook"),
                DARK_RED,
                link=TO_HOOK,
            ),
        ],
    ]
    saturation = [
        lines(
            "Places in use",
            "How much of each pool's places is taken.",
            "percentunit",
            [
                (
                    f"""sum by (pool) (hookyard_pool_slots{{{HERE},state="used"}})
                / sum by (pool) (hookyard_pool_slots{{{HERE},state="limit"}})""",
                    "{{pool}}",
                )
            ],
            colors=POOLS,
            most=1,
            limits=steps(GREEN, (0.9, RED)),
        ),
        lines(
            "Queue in use",
            "How much of each pool's queue is taken; the pool of native hooks has no bound.",
            "percentunit",
            [
                (
                    f"""sum by (pool) (hookyard_queue_depth{{{HERE}}})
                / (sum by (pool) (hookyard_queue_limit{{{HERE}}}) > 0)""",
                    "{{pool}}",
                )
            ],
            colors=POOLS,
            most=1,
            limits=steps(GREEN, (0.5, RED)),
        ),
        lines(
            "Queue wait, p95",
            "How long invocations waited for a place.",
            "s",
            [
                (
                    f"histogram_quantile(0.95, sum by (le, pool) (rate(hookyard_queue_wait_seconds_bucket{{{HERE}}}[$__rate_interval])))",
                    "{{pool}}",
                )
            ],
            colors=POOLS,
        ),
        lines(
            "Shed work",
            "Work that was turned away: where, and why.",
            "ops",
            [(rate("hookyard_shed_total", HERE, "where, reason"), "{{where}}: {{reason}}")],
            stacked=True,
        ),
    ]
    processes = [
        lines(
            "Processes",
            "Processes of hooks at work, and killed ones that are not gone yet.",
            "none",
            [each("hookyard_processes", HERE, "state")],
            colors={"running": BLUE, "terminating": RED},
        ),
        quantiles(
            "Time to start a process",
            "What the system takes to start a process.",
            f"hookyard_spawn_duration_seconds_bucket{{{HERE}}}",
        ),
        lines(
            "Exits",
            "How processes ended that served one event.",
            "ops",
            [by("hookyard_process_exits_total", HERE, "class")],
            colors=EXITS,
            stacked=True,
        ),
        lines(
            "Left behind",
            "Processes that left a descendant behind, which was killed or held their output open.",
            "ops",
            [by("hookyard_process_leaks_total", HERE, "kind")],
            colors={"pipe_held": ORANGE, "survivor_killed": RED},
            stacked=True,
        ),
    ]
    return dashboard(
        "hookyard-overview",
        "hookyard: overview",
        "Whether hooks do what they should, and which one does not.",
        [INSTANCE, EVENTS],
        [RESTARTS, RELOADS],
        [
            row("Objectives", 4, objectives),
            row("How fast the budgets go", 7, budgets),
            row("Interceptors: hosts wait for them", 8, traffic, waits),
            row("Lifecycle: hooks only watch", 7, lifecycle),
            row("Hooks at the top, over the time that is shown", 8, *top),
            row("Saturation", 7, saturation),
            row("Processes", 7, processes),
        ],
    )
