"""The internals: how hookyard itself fares."""

from .panels import BLUE, GREEN, GREY, ORANGE, PINK, RED, YELLOW, dashboard, dashed, lines, row, stat, steps, table
from .terms import ANSWERS, BROKEN, HERE, INSTANCE, RELOADS, RESTARTS, by, each, grown, rate


def internals():
    """hookyard itself."""
    summary = [
        stat(
            "Up for",
            "How long the process that started last is there.",
            "s",
            f"time() - max(process_start_time_seconds{{{HERE}}})",
            steps(BLUE),
            empty="none",
        ),
        stat(
            "Restarts",
            "Actors that died and were replaced, over the time that is shown.",
            "short",
            grown("hookyard_actor_restarts_total", HERE),
            steps(GREEN, (1, ORANGE), (20, RED)),
            decimals=0,
            empty="0",
        ),
        stat(
            "Panics",
            "Panics that were caught, over the time that is shown.",
            "short",
            grown("hookyard_panics_total", HERE),
            steps(GREEN, (1, RED)),
            decimals=0,
            empty="0",
        ),
        stat(
            "Late replies",
            "Replies to invocations that had already ended, over the time that is shown.",
            "short",
            grown("hookyard_late_replies_total", HERE),
            steps(GREEN, (20, YELLOW)),
            decimals=0,
            empty="0",
        ),
        stat(
            "Labels beyond the limit",
            "Hooks that share the label __other__ since there are too many names, over the time that is shown.",
            "short",
            grown("hookyard_label_overflow_total", HERE),
            steps(GREEN, (1, YELLOW)),
            decimals=0,
            empty="0",
        ),
        stat(
            "Sound since",
            "How long ago nothing was wrong with any workspace that was loaded.",
            "s",
            f"time() - min(hookyard_config_last_reload_success_timestamp_seconds{{{HERE}}})",
            steps(BLUE),
            empty="never",
        ),
    ]
    actors = [
        lines(
            "Runs",
            "Runs that are known: with an actor, or without.",
            "none",
            [each("hookyard_runs", HERE, "state")],
            colors={"active": BLUE, "passivated": GREY},
            stacked=True,
        ),
        lines(
            "Sessions",
            "Sessions with a run that has an actor.",
            "none",
            [each("hookyard_sessions", HERE, "state")],
            colors={"active": BLUE, "passivated": GREY},
            stacked=True,
        ),
        lines(
            "Restarts by actor",
            "Actors that died and were replaced.",
            "ops",
            [by("hookyard_actor_restarts_total", HERE, "actor")],
            stacked=True,
        ),
        lines(
            "Panics by actor",
            "Panics that were caught, by who panicked.",
            "ops",
            [by("hookyard_panics_total", HERE, "actor")],
            stacked=True,
        ),
    ]
    runtime = [
        lines(
            "Threads at work",
            "How much of the time the runtime's threads are busy with tasks.",
            "percentunit",
            [
                (
                    f"rate(tokio_busy_seconds_total{{{HERE}}}[$__rate_interval]) / on (instance) tokio_workers{{{HERE}}}",
                    "{{instance}}",
                )
            ],
            most=1,
            limits=steps(GREEN, (0.8, RED)),
        ),
        lines("Tasks", "Tasks that have not ended.", "none", [each("tokio_live_tasks", HERE, "instance")]),
        lines(
            "Tasks that wait",
            "Tasks that wait for any thread.",
            "none",
            [each("tokio_global_queue_depth", HERE, "instance")],
        ),
        lines(
            "Sleeps",
            "How often the runtime's threads went to sleep for want of tasks.",
            "ops",
            [by("tokio_park_count_total", HERE, "instance")],
        ),
    ]
    files = [
        lines(
            "Hooks by state",
            "Hooks of all workspaces; invalid counts files with errors.",
            "none",
            [each("hookyard_hooks_loaded", HERE, "state")],
            colors={"enabled": GREEN, "disabled": GREY, "untrusted": PINK, "invalid": RED},
            stacked=True,
        ),
        lines(
            "Hooks by dialect",
            "Hooks that are enabled, by whose rules they are written in.",
            "none",
            [each("hookyard_hooks_loaded", f'{HERE},state="enabled"', "dialect")],
            stacked=True,
        ),
        lines(
            "Files are sound",
            "1 while nothing is wrong with any workspace of the instance.",
            "none",
            [each("hookyard_config_last_reload_successful", HERE, "instance")],
            most=1,
        ),
        lines(
            "Errors in hook files",
            "Errors that were found, each time files were loaded, by their kind.",
            "ops",
            [by("hookyard_config_errors_total", HERE, "kind")],
            stacked=True,
        ),
    ]
    door = [
        lines(
            "Requests by route",
            "Requests to the daemon.",
            "reqps",
            [by("hookyard_api_requests_total", HERE, "route")],
            stacked=True,
        ),
        lines(
            "Requests by status",
            "Requests to the daemon, by the hundreds of their status.",
            "reqps",
            [by("hookyard_api_requests_total", HERE, "status_class")],
            colors={**ANSWERS, "1xx": GREY},
            stacked=True,
        ),
        lines(
            "Notices dropped",
            "Notices of the stream that its readers were too slow for.",
            "ops",
            [(rate("hookyard_stream_dropped_total", HERE, "instance"), "{{instance}}")],
        ),
        lines(
            "Audit lines lost",
            "Lines of the audit that were lost: too many waited, or they could not be written.",
            "ops",
            [by("hookyard_audit_dropped_total", HERE, "reason")],
            stacked=True,
        ),
        lines(
            "Spans lost",
            "Spans of traces that were lost: too many waited, or they could not be exported.",
            "ops",
            [by("hookyard_trace_spans_dropped_total", HERE, "reason")],
            stacked=True,
        ),
    ]
    process = [
        lines(
            "Memory",
            "Memory that hookyard itself occupies; its hooks are processes of their own.",
            "bytes",
            [(f"process_resident_memory_bytes{{{HERE}}}", "{{instance}} resident")],
        ),
        lines(
            "Processor",
            "How many processors hookyard itself keeps busy.",
            "none",
            [(f"rate(process_cpu_seconds_total{{{HERE}}}[$__rate_interval])", "{{instance}}")],
        ),
        lines(
            "Open files",
            "Open file descriptors, and how many there may be.",
            "none",
            [(f"process_open_fds{{{HERE}}}", "{{instance}} open"), (f"min(process_max_fds{{{HERE}}})", "limit")],
            overrides=[dashed("limit", RED)],
        ),
        lines("Threads", "Threads of the process.", "none", [(f"process_threads{{{HERE}}}", "{{instance}}")]),
    ]
    builds = [
        table(
            "Versions",
            "Which hookyard runs where.",
            "none",
            f"hookyard_build_info{{{HERE}}}",
            {"instance": "Instance", "job": "Job", "version": "Version", "commit": "Commit"},
        )
    ]
    return dashboard(
        "hookyard-internals",
        "hookyard: internals",
        "How hookyard itself fares: actors, runtime, files, requests, memory.",
        [INSTANCE],
        [RESTARTS, RELOADS, BROKEN],
        [
            row("In short", 4, summary),
            row("Actors", 7, actors),
            row("Runtime", 7, runtime),
            row("Configuration", 7, files),
            row("Requests", 7, door),
            row("Process", 7, process),
            row("Builds", 5, builds),
        ],
    )
