"""The hook-detail dashboard: results, run times and failures of a hook."""

from .panels import BLUE, CYAN, GREEN, ORANGE, RED, YELLOW, dashboard, dashed, heatmap, lines, quantiles, row, stat, steps
from .terms import (
    ANSWERS,
    DEGRADED,
    ENDED,
    EVENTS,
    EXITS,
    FAILURES,
    HERE,
    HOOK,
    HOOKS,
    HOOK_ONLY,
    INSTANCE,
    JOB,
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
            "Number of invocations in the selected time range.",
            "short",
            grown("hookyard_hook_runs_total", HOOK),
            steps(BLUE),
            decimals=0,
            empty="0",
        ),
        stat(
            "Failed",
            "Share of invocations that gave no answer.",
            "percentunit",
            f"""{grown("hookyard_hook_runs_total", f"{HOOK},{FAILURES}")} / {grown("hookyard_hook_runs_total", HOOK)}""",
            steps(GREEN, (0.01, YELLOW), (0.1, RED)),
            decimals=1,
            empty="no runs",
        ),
        stat(
            "Time, p95",
            "95th percentile of the run time of an invocation.",
            "s",
            f"histogram_quantile(0.95, {grown('hookyard_hook_duration_seconds_bucket', HOOK, 'le')})",
            steps(BLUE, (10, ORANGE), (30, RED)),
            empty="no runs",
        ),
        stat(
            "Blocks and halts",
            "Number of block and halt verdicts in the selected time range.",
            "short",
            grown("hookyard_hook_verdicts_total", f'{HOOK},verdict=~"block|halt"'),
            steps(BLUE),
            decimals=0,
            empty="0",
        ),
        stat(
            "Fail-opens",
            "Failures after which the event continued, in the selected time range.",
            "short",
            grown("hookyard_hook_fail_open_total", HOOK),
            steps(GREEN, (1, RED)),
            decimals=0,
            empty="0",
        ),
        stat(
            "Fail-closeds",
            "Failures that blocked an event or asked a person, in the selected time range.",
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
            "Verdicts of the hook. A failure counts as a verdict only if the hook's policy makes it one.",
            "ops",
            [by("hookyard_hook_verdicts_total", HOOK, "verdict")],
            colors=VERDICTS,
            stacked=True,
        ),
    ]
    times = [
        heatmap(
            "Time of invocations",
            "Distribution of run times.",
            "s",
            f"hookyard_hook_duration_seconds_bucket{{{HOOK}}}",
        ),
        lines(
            "Waiting and running, p95",
            """Run time of the hook with its timeout, and time that invocations of all hooks wait before they run in its pool. If
            waits exceed run times, the pool needs more slots, or the hook more workers.""",
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
                (f"max(hookyard_hook_timeout_seconds{{{HOOK_ONLY}}})", "timeout"),
            ],
            overrides=[dashed("timeout", RED)],
            colors={"runs": CYAN, **{f"waits for {pool}": color for pool, color in POOLS.items()}},
        ),
    ]
    answers = [
        lines(
            "Failures by what they counted as",
            "Failures after which the event continued, and failures that stopped it, by how they ended.",
            "ops",
            [
                (rate("hookyard_hook_fail_open_total", HOOK, "ended"), "open: {{ended}}"),
                (rate("hookyard_hook_fail_closed_total", HOOK, "ended"), "closed: {{ended}}"),
            ],
            stacked=True,
        ),
        lines(
            "Patches",
            "Patches of the hook, by result.",
            "ops",
            [(rate("hookyard_patches_total", HOOK_ONLY, "target, result"), "{{target}}: {{result}}")],
            stacked=True,
        ),
    ]
    commands = [
        lines(
            "Exits, all hooks",
            "How processes that handle one event ended. Not available per hook.",
            "ops",
            [by("hookyard_process_exits_total", HERE, "class")],
            colors=EXITS,
            stacked=True,
        ),
        lines(
            "Output cut off",
            "Invocations whose output was cut, by stream.",
            "ops",
            [by("hookyard_output_truncated_total", HOOK_ONLY, "stream")],
            colors={"stdout": BLUE, "stderr": ORANGE},
            stacked=True,
        ),
        lines(
            "Prespawned processes",
            "Events that used a waiting process, and events that found none.",
            "ops",
            [by("hookyard_prespawn_hits_total", HOOK_ONLY, "result")],
            colors={"hit": GREEN, "miss": ORANGE},
            stacked=True,
        ),
    ]
    workers = [
        lines(
            "Workers",
            "Worker processes, by state.",
            "none",
            [each("hookyard_workers", HOOK_ONLY, "state")],
            colors=WORKERS,
            stacked=True,
        ),
        lines(
            "Degraded workers",
            "1 while the hook's workers do not serve, by reason.",
            "none",
            [each("hookyard_workers_degraded", HOOK_ONLY, "reason")],
            colors=DEGRADED,
        ),
        lines(
            "Waiting",
            "Invocations that wait at the hook's own limit or for its busy workers.",
            "none",
            [each("hookyard_hook_waiting", HOOK_ONLY, "hook")],
        ),
        lines(
            "Worker restarts",
            "Workers that failed and are replaced.",
            "ops",
            [by("hookyard_worker_restarts_total", HOOK_ONLY, "hook")],
        ),
        lines(
            "Http answers",
            "Requests of http hooks, by status class or error. Retries count as requests.",
            "reqps",
            [by("hookyard_http_requests_total", HOOK_ONLY, "class")],
            colors=ANSWERS,
            stacked=True,
        ),
    ]
    models = [
        quantiles(
            "Time of models, p95",
            "Response time of models, over all hooks.",
            f"hookyard_model_request_duration_seconds_bucket{{{HERE}}}",
            split="model_ref",
        ),
        lines(
            "Tokens",
            "Tokens that models read and wrote, over all hooks.",
            "suffix: tokens/s",
            [(rate("hookyard_model_tokens_total", HERE, "model_ref, direction"), "{{model_ref}}: {{direction}}")],
            stacked=True,
        ),
    ]
    return dashboard(
        "hookyard-hook",
        "hookyard: hook detail",
        "Results, run times and failures of one hook.",
        [JOB, INSTANCE, EVENTS, HOOKS],
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
