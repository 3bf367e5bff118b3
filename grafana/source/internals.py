"""The internals dashboard: actors, runtime, hook files, requests, memory."""

from .panels import BLUE, GREEN, GREY, ORANGE, PINK, RED, YELLOW, dashboard, dashed, lines, row, stat, steps, table
from .terms import ANSWERS, BROKEN, HERE, INSTANCE, JOB, RELOADS, RESTARTS, by, each, grown, rate


def internals():
    """hookyard itself."""
    summary = [
        stat(
            "Up for",
            "Uptime of the most recently started process.",
            "s",
            f"time() - max(process_start_time_seconds{{{HERE}}})",
            steps(BLUE),
            empty="none",
        ),
        stat(
            "Restarts",
            "Actors that died and were replaced, in the selected time range.",
            "short",
            grown("hookyard_actor_restarts_total", HERE),
            steps(GREEN, (1, ORANGE), (20, RED)),
            decimals=0,
            empty="0",
        ),
        stat(
            "Panics",
            "Caught panics, in the selected time range.",
            "short",
            grown("hookyard_panics_total", HERE),
            steps(GREEN, (1, RED)),
            decimals=0,
            empty="0",
        ),
        stat(
            "Late replies",
            "Replies to invocations that had already ended, in the selected time range.",
            "short",
            grown("hookyard_late_replies_total", HERE),
            steps(GREEN, (20, YELLOW)),
            decimals=0,
            empty="0",
        ),
        stat(
            "Labels beyond the limit",
            "Hooks that share the label __other__ because there are too many names, in the selected time range.",
            "short",
            grown("hookyard_label_overflow_total", HERE),
            steps(GREEN, (1, YELLOW)),
            decimals=0,
            empty="0",
        ),
        stat(
            "Sound since",
            "Time since all workspaces were last loaded without an error.",
            "s",
            f"time() - min(hookyard_config_last_reload_success_timestamp_seconds{{{HERE}}})",
            steps(BLUE),
            empty="never",
        ),
    ]
    actors = [
        lines(
            "Runs",
            "Known runs, with or without an actor.",
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
            "Caught panics, by actor.",
            "ops",
            [by("hookyard_panics_total", HERE, "actor")],
            stacked=True,
        ),
    ]
    runtime = [
        lines(
            "Threads at work",
            "Share of time that the runtime's threads run tasks.",
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
        lines("Tasks", "Tasks that are alive.", "none", [each("tokio_live_tasks", HERE, "instance")]),
        lines(
            "Tasks that wait",
            "Tasks that wait for a thread.",
            "none",
            [each("tokio_global_queue_depth", HERE, "instance")],
        ),
        lines(
            "Sleeps",
            "How often the runtime's threads went to sleep because no task was ready.",
            "ops",
            [by("tokio_park_count_total", HERE, "instance")],
        ),
    ]
    files = [
        lines(
            "Hooks by state",
            "Hooks of all workspaces, by state. `invalid` counts files with errors.",
            "none",
            [each("hookyard_hooks_loaded", HERE, "state")],
            colors={"enabled": GREEN, "disabled": GREY, "untrusted": PINK, "invalid": RED},
            stacked=True,
        ),
        lines(
            "Hooks by dialect",
            "Enabled hooks, by dialect.",
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
            "Broken files",
            "Broken hook files, by what became of the rules that they last had: kept in force, their events denied, or unknown.",
            "none",
            [each("hookyard_broken_files", HERE, "rules")],
            colors={"kept": YELLOW, "denied": PINK, "unknown": RED},
            stacked=True,
        ),
        lines(
            "Required hooks missing",
            "Required hooks that are not in force, over all workspaces of the instance. Their events are blocked.",
            "none",
            [each("hookyard_required_hooks_missing", HERE, "instance")],
        ),
        lines(
            "Workspaces not loaded",
            "Workspaces of the settings that could not be loaded. Their events are refused.",
            "none",
            [each("hookyard_workspaces_not_loaded", HERE, "instance")],
        ),
        lines(
            "Errors in hook files",
            "Errors found when files were loaded, by kind.",
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
            "Requests to the daemon, by status class.",
            "reqps",
            [by("hookyard_api_requests_total", HERE, "status_class")],
            colors={**ANSWERS, "1xx": GREY},
            stacked=True,
        ),
        lines(
            "Requests denied",
            "Requests without the right to their operation, by listener and error code. A hook or a stranger asked for more "
            "than it may.",
            "reqps",
            [(rate("hookyard_api_denied_total", HERE, "listener, code"), "{{listener}} {{code}}")],
            stacked=True,
        ),
        lines(
            "Requests beyond limits",
            "Connections, requests and bodies beyond a limit of their listener, by listener and limit. Agents get a verdict, "
            "others an error.",
            "reqps",
            [(rate("hookyard_listener_refusals_total", HERE, "listener, limit"), "{{listener}} {{limit}}")],
            stacked=True,
        ),
        lines(
            "Notices dropped",
            "Stream entries dropped because a reader was too slow.",
            "ops",
            [(rate("hookyard_stream_dropped_total", HERE, "instance"), "{{instance}}")],
        ),
        lines(
            "Audit lines lost",
            "Dropped audit lines, because the queue was full or writing failed.",
            "ops",
            [by("hookyard_audit_dropped_total", HERE, "reason")],
            stacked=True,
        ),
        lines(
            "Lines waiting to be shipped",
            "Audit lines and lines with the daemon's state that wait until the server of `ship.url` takes them.",
            "short",
            [(f"hookyard_ship_waiting_lines{{{HERE}}}", "{{instance}}")],
        ),
        lines(
            "Size of lines waiting to be shipped",
            "Disk space of those lines. Beyond `ship.max_size` the oldest are dropped.",
            "bytes",
            [(f"hookyard_ship_waiting_bytes{{{HERE}}}", "{{instance}}")],
        ),
        lines(
            "Lines shipped",
            "Lines that the server of `ship.url` has taken.",
            "ops",
            [(rate("hookyard_shipped_lines_total", HERE, "instance"), "{{instance}}")],
        ),
        lines(
            "Lines for shipping lost",
            "Dropped lines: they had to make room, could not be written or read, or were too large for the server.",
            "ops",
            [by("hookyard_ship_dropped_total", HERE, "reason")],
            stacked=True,
        ),
        lines(
            "Spans lost",
            "Dropped trace spans, because the queue was full or the export failed.",
            "ops",
            [by("hookyard_trace_spans_dropped_total", HERE, "reason")],
            stacked=True,
        ),
    ]
    state = [
        lines(
            "Time of writes",
            "How long writes of the state of runs to disk take, with their sync.",
            "s",
            [
                (
                    f"histogram_quantile({share}, "
                    f"sum by (le) (rate(hookyard_store_write_duration_seconds_bucket{{{HERE}}}[$__rate_interval])))",
                    name,
                )
                for share, name in [(0.5, "p50"), (0.99, "p99")]
            ],
        ),
        lines(
            "Failed writes",
            "Failed writes of the state of runs, halts answered before they were on disk, and starts that found the state gone.",
            "ops",
            [by("hookyard_store_errors_total", HERE, "reason")],
            stacked=True,
        ),
        lines(
            "Not on disk",
            "Runs whose latest state is not on disk yet. A restart would forget halted ones.",
            "none",
            [each("hookyard_store_unsaved_runs", HERE, "state")],
            colors={"halted": RED, "other": GREY},
            stacked=True,
        ),
        lines(
            "Outbox",
            "Lifecycle events whose hooks have not ended. Dead letters are not tried any more.",
            "none",
            [each("hookyard_outbox_records", HERE, "state")],
            colors={"under_way": GREY, "dead": RED},
            stacked=True,
        ),
        lines(
            "Oldest in the outbox",
            "Age of the oldest lifecycle event that is to be delivered.",
            "s",
            [(f"hookyard_outbox_oldest_seconds{{{HERE}}}", "{{instance}}")],
        ),
        lines(
            "Deliveries",
            "How deliveries of lifecycle events ended. Failed ones are tried again.",
            "ops",
            [by("hookyard_outbox_deliveries_total", HERE, "result")],
            stacked=True,
        ),
        lines(
            "Bundle",
            "The version of the signed bundle that is in force; none means that events are blocked or asked about.",
            "none",
            [(f"hookyard_bundle_info{{{HERE}}}", "{{instance}} {{version}}")],
        ),
        lines(
            "Age of the bundle",
            "Time since the bundle's server has confirmed what is in force. It grows while the server cannot be asked.",
            "s",
            [(f"hookyard_bundle_age_seconds{{{HERE}}}", "{{instance}}")],
        ),
        lines(
            "Stale bundles and changed copies",
            "1 while the bundle in force is stale, and how often its files were found changed on the disk.",
            "none",
            [
                (f"hookyard_bundle_stale{{{HERE}}}", "{{instance}} stale"),
                (
                    f"sum by (instance, result) (increase(hookyard_bundle_copy_changes_total{{{HERE}}}[$__rate_interval]))",
                    "{{instance}} changed: {{result}}",
                ),
            ],
        ),
        lines(
            "Asking for bundles",
            "How often the bundle's server was asked, by what came of it, and bundles that were not taken, by the reason.",
            "ops",
            [
                by("hookyard_bundle_polls_total", HERE, "result"),
                (f"sum by (why) (rate(hookyard_bundle_rejected_total{{{HERE}}}[$__rate_interval]))", "refused: {{why}}"),
            ],
        ),
        lines(
            "Dead letters",
            "Lifecycle events that could not be delivered, and dead letters that were dropped because there were too many.",
            "ops",
            [
                by("hookyard_outbox_dead_letters_total", HERE, "reason"),
                (f"sum(rate(hookyard_outbox_dead_letters_dropped_total{{{HERE}}}[$__rate_interval]))", "dropped"),
            ],
            stacked=True,
        ),
    ]
    cluster = [
        lines(
            "Halts of other nodes known",
            "1 while the instance knows all halts of its cluster, 0 while their store has not been heard of for "
            "`cluster.stale_after`.",
            "none",
            [(f"hookyard_cluster_fresh{{{HERE}}}", "{{instance}}")],
            most=1,
        ),
        lines(
            "Halts of the cluster",
            "Halts that each instance knows, all nodes' together, and those of its own that are not in the store yet.",
            "none",
            [(f"sum by (instance, state) (hookyard_cluster_halts{{{HERE}}})", "{{instance}} {{state}}")],
        ),
        lines(
            "Writes to the store",
            "Halts, and ends of halts, that were written into the store of the cluster, and attempts that failed.",
            "ops",
            [by("hookyard_cluster_puts_total", HERE, "result")],
            colors={"stored": GREEN, "failed": RED},
            stacked=True,
        ),
        lines(
            "Into the queue",
            "Lifecycle events that this node put into the queue of its cluster, by whether they were there already, and attempts that failed.",
            "ops",
            [by("hookyard_cluster_queue_puts_total", HERE, "result")],
            colors={"stored": GREEN, "failed": RED},
            stacked=True,
        ),
        lines(
            "Out of the queue",
            "Events of the queue that this worker has acknowledged, made dead letters or given back.",
            "ops",
            [by("hookyard_cluster_queue_ended_total", HERE, "result")],
            colors={"acknowledged": GREEN, "dead": RED},
            stacked=True,
        ),
        lines(
            "Queue lost",
            "How often an instance found another queue in the place of its former one, or one that was set back: "
            "what waited there is lost.",
            "none",
            [(f"sum by (instance) (increase(hookyard_cluster_queue_replaced_total{{{HERE}}}[$__rate_interval]))", "{{instance}}")],
        ),
        lines(
            "Time to store",
            "How long it took until a majority of the servers had a halt, or until that failed.",
            "s",
            [
                (
                    f"histogram_quantile({share}, "
                    f"sum by (le) (rate(hookyard_cluster_put_duration_seconds_bucket{{{HERE}}}[$__rate_interval])))",
                    name,
                )
                for share, name in [(0.5, "p50"), (0.99, "p99")]
            ],
        ),
    ]
    process = [
        lines(
            "Memory",
            "Resident memory of hookyard itself, without hook processes.",
            "bytes",
            [(f"process_resident_memory_bytes{{{HERE}}}", "{{instance}} resident")],
        ),
        lines(
            "Processor",
            "Processors that hookyard itself keeps busy, without hook processes.",
            "none",
            [(f"rate(process_cpu_seconds_total{{{HERE}}}[$__rate_interval])", "{{instance}}")],
        ),
        lines(
            "Open files",
            "Open file descriptors, and the limit.",
            "none",
            [(f"process_open_fds{{{HERE}}}", "{{instance}} open"), (f"min(process_max_fds{{{HERE}}})", "limit")],
            overrides=[dashed("limit", RED)],
        ),
        lines("Threads", "Threads of the process.", "none", [(f"process_threads{{{HERE}}}", "{{instance}}")]),
    ]
    builds = [
        table(
            "Versions",
            "Version of each instance.",
            "none",
            f"hookyard_build_info{{{HERE}}}",
            {"instance": "Instance", "job": "Job", "version": "Version", "commit": "Commit"},
        )
    ]
    return dashboard(
        "hookyard-internals",
        "hookyard: internals",
        "hookyard itself: actors, runtime, hook files, requests, memory.",
        [JOB, INSTANCE],
        [RESTARTS, RELOADS, BROKEN],
        [
            row("In short", 4, summary),
            row("Actors", 7, actors),
            row("Runtime", 7, runtime),
            row("Configuration", 7, files),
            row("Requests", 7, door),
            row("State of runs", 7, state),
            row("Cluster", 7, cluster),
            row("Process", 7, process),
            row("Builds", 5, builds),
        ],
    )
