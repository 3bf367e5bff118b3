"""The detail of a hook: what it does, how long it takes, and how it fails."""

from .panels import BLUE, CYAN, GREEN, ORANGE, RED, YELLOW, dashboard, heatmap, lines, quantiles, row, stat, steps
from .terms import (
    ANSWERS,
    ENDED,
    EVENTS,
    EXITS,
    FAILURES,
    HERE,
    HOOK,
    HOOKS,
    HOOK_ONLY,
    INSTANCE,
    POOLS,
    RELOADS,
    VERDICTS,
    WORKERS,
    by,
    each,
    grown,
    rate,
)


def hook_detail():
    """One hook, or some."""
    summary = [
        stat(
            "Invocations",
            "How often it ran in the time that is shown.",
            "short",
            grown("hookyard_hook_runs_total", HOOK),
            steps(BLUE),
            decimals=0,
            empty="0",
        ),
        stat(
            "Failed",
            "The share of invocations that came to no answer.",
            "percentunit",
            f"""{grown("hookyard_hook_runs_total", f"{HOOK},{FAILURES}")} / {grown("hookyard_hook_runs_total", HOOK)}""",
            steps(GREEN, (0.01, YELLOW), (0.1, RED)),
            decimals=1,
            empty="no runs",
        ),
        stat(
            "Time, p95",
            "The 95th percentile of what an invocation takes.",
            "s",
            f"histogram_quantile(0.95, {grown('hookyard_hook_duration_seconds_bucket', HOOK, 'le')})",
            steps(BLUE, (10, ORANGE), (30, RED)),
            empty="no runs",
        ),
        stat(
            "Blocks and halts",
            "How often it stopped something in the time that is shown.",
            "short",
            grown("hookyard_hook_verdicts_total", f'{HOOK},verdict=~"block|halt"'),
            steps(BLUE),
            decimals=0,
            empty="0",
        ),
        stat(
            "Fail-opens",
            "Failures that were let pass in the time that is shown.",
            "short",
            grown("hookyard_hook_fail_open_total", HOOK),
            steps(GREEN, (1, RED)),
            decimals=0,
            empty="0",
        ),
        stat(
            "Fail-closeds",
            "Failures that stopped an event or had a person asked in the time that is shown.",
            "short",
            grown("hookyard_hook_fail_closed_total", HOOK),
            steps(GREEN, (1, ORANGE)),
            decimals=0,
            empty="0",
        ),
    ]
    what = [
        lines(
            "How invocations ended",
            "All invocations, by how they ended.",
            "ops",
            [by("hookyard_hook_runs_total", HOOK, "ended")],
            colors=ENDED,
            stacked=True,
        ),
        lines(
            "Verdicts",
            "What the hook said; a failure says something only where its policy makes it one.",
            "ops",
            [by("hookyard_hook_verdicts_total", HOOK, "verdict")],
            colors=VERDICTS,
            stacked=True,
        ),
    ]
    times = [
        heatmap(
            "Time of invocations",
            "How many invocations took how long.",
            "s",
            f"hookyard_hook_duration_seconds_bucket{{{HOOK}}}",
        ),
        lines(
            "Waiting and running, p95",
            """How long the hook runs, beside how long invocations of all hooks wait for a place in its pool: work that waits longer
            than it runs wants more places.""",
            "s",
            [
                (
                    f"histogram_quantile(0.95, sum by (le) (rate(hookyard_hook_duration_seconds_bucket{{{HOOK}}}[$__rate_interval])))",
                    "runs",
                ),
                (
                    f"""histogram_quantile(0.95, sum by (le, pool) (rate(hookyard_queue_wait_seconds_bucket{{{HERE}}}[$__rate_interval])))
                    and on (pool) label_join({rate("hookyard_hook_runs_total", HOOK, "handler")}, "pool", "", "handler")""",
                    "waits for {{pool}}",
                ),
            ],
            colors={"runs": CYAN, **{f"waits for {pool}": color for pool, color in POOLS.items()}},
        ),
    ]
    answers = [
        lines(
            "Failures by what they counted as",
            "Failures that were let pass, and failures that stopped the event, by how they ended.",
            "ops",
            [
                (rate("hookyard_hook_fail_open_total", HOOK, "ended"), "open: {{ended}}"),
                (rate("hookyard_hook_fail_closed_total", HOOK, "ended"), "closed: {{ended}}"),
            ],
            stacked=True,
        ),
        lines(
            "Patches",
            "Changes that the hook wanted, by what became of them.",
            "ops",
            [(rate("hookyard_patches_total", HOOK_ONLY, "target, result"), "{{target}}: {{result}}")],
            stacked=True,
        ),
    ]
    commands = [
        lines(
            "Exits, all hooks",
            "How processes ended that served one event. Processes are not counted by hook.",
            "ops",
            [by("hookyard_process_exits_total", HERE, "class")],
            colors=EXITS,
            stacked=True,
        ),
        lines(
            "Output cut off",
            "Invocations that wrote more to a stream than is kept.",
            "ops",
            [by("hookyard_output_truncated_total", HOOK_ONLY, "stream")],
            colors={"stdout": BLUE, "stderr": ORANGE},
            stacked=True,
        ),
        lines(
            "Prespawned processes",
            "Events that found a process waiting, and events that did not.",
            "ops",
            [by("hookyard_prespawn_hits_total", HOOK_ONLY, "result")],
            colors={"hit": GREEN, "miss": ORANGE},
            stacked=True,
        ),
    ]
    workers = [
        lines(
            "Workers",
            "Worker processes by what they do.",
            "none",
            [each("hookyard_workers", HOOK_ONLY, "state")],
            colors=WORKERS,
            stacked=True,
        ),
        lines(
            "Worker restarts",
            "Workers that failed, so that another takes their place.",
            "ops",
            [by("hookyard_worker_restarts_total", HOOK_ONLY, "hook")],
        ),
        lines(
            "Http answers",
            "Requests of http hooks, by status or by why there is none. A retry is another request.",
            "reqps",
            [by("hookyard_http_requests_total", HOOK_ONLY, "class")],
            colors=ANSWERS,
            stacked=True,
        ),
    ]
    models = [
        quantiles(
            "Time of models, p95",
            "How long models took to answer, hooks of all names together.",
            f"hookyard_model_request_duration_seconds_bucket{{{HERE}}}",
            split="model_ref",
        ),
        lines(
            "Tokens",
            "Tokens that models read and wrote, hooks of all names together.",
            "suffix: tokens/s",
            [(rate("hookyard_model_tokens_total", HERE, "model_ref, direction"), "{{model_ref}}: {{direction}}")],
            stacked=True,
        ),
    ]
    return dashboard(
        "hookyard-hook",
        "hookyard: hook detail",
        "What one hook does, how long it takes, and how it fails.",
        [INSTANCE, EVENTS, HOOKS],
        [RELOADS],
        [
            row("In short", 4, summary),
            row("What it does", 8, what, times),
            row("What came of it", 7, answers),
            row("Programs", 7, commands),
            row("Workers and servers", 7, workers),
            row("Language models", 7, models),
        ],
    )
