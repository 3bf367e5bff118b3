"""Terms that the dashboards share: colours of results, variables, and common queries."""

from .panels import (
    BLUE,
    CYAN,
    DARK_RED,
    GREEN,
    GREY,
    ORANGE,
    PALE_BLUE,
    PINK,
    PURPLE,
    RED,
    VIOLET,
    YELLOW,
    marks,
    variable,
)

# Events whose hooks only watch; the hooks of all others can change or stop something.
LIFECYCLE = (
    "session_started|session_ended|tool_failed|notification|subagent_started|run_completed|run_failed|host_event"
)

# What the variables of a dashboard choose.
HERE = 'job=~"$job",instance=~"$instance"'
EVENT = f'{HERE},event=~"$event"'
GUARDED = f'{EVENT},event!~"{LIFECYCLE}"'
WATCHED = f'{EVENT},event=~"{LIFECYCLE}"'
HOOK = f'{EVENT},hook=~"$hook"'
HOOK_ONLY = f'{HERE},hook=~"$hook"'

VERDICTS = {"proceed": PALE_BLUE, "allow": GREEN, "ask": YELLOW, "block": RED, "halt": PURPLE}
ENDED = {
    "completed": GREEN,
    "failed": RED,
    "timed_out": ORANGE,
    "spawn_failed": DARK_RED,
    "invalid_output": PURPLE,
    "output_too_large": VIOLET,
    "cancelled": GREY,
    "shed": YELLOW,
    "untrusted": PINK,
}
FAILURES = 'ended!~"completed|cancelled"'
EXITS = {
    "ok": GREEN,
    "block": BLUE,
    "nonzero": RED,
    "signal": PURPLE,
    "timeout_term": ORANGE,
    "timeout_kill": DARK_RED,
}
ANSWERS = {
    "2xx": GREEN,
    "3xx": CYAN,
    "4xx": YELLOW,
    "5xx": RED,
    "other": GREY,
    "timeout": ORANGE,
    "refused": DARK_RED,
    "connect": PURPLE,
    "dns": VIOLET,
    "not_allowed": PALE_BLUE,
    "tls": PINK,
    "broken": BLUE,
}
POOLS = {"command": BLUE, "http": GREEN, "prompt": ORANGE, "agent": PURPLE, "native": GREY}
WORKERS = {"starting": YELLOW, "idle": PALE_BLUE, "busy": BLUE}
DEGRADED = {"no_hello": ORANGE, "failing": RED}

JOB = variable("job", "Job", "label_values(hookyard_build_info, job)")
INSTANCE = variable("instance", "Instance", 'label_values(hookyard_build_info{job=~"$job"}, instance)')
EVENTS = variable("event", "Event", f"label_values(hookyard_event_duration_seconds_count{{{HERE}}}, event)")
HOOKS = variable("hook", "Hook", f"label_values(hookyard_hook_runs_total{{{HERE}}}, hook)")

RESTARTS = marks("hookyard started", f"changes(process_start_time_seconds{{{HERE}}}[$__rate_interval]) > 0", PURPLE)
RELOADS = marks(
    "hooks loaded",
    f"changes(hookyard_config_last_reload_success_timestamp_seconds{{{HERE}}}[$__rate_interval]) > 0",
    BLUE,
)
BROKEN = marks("hook files broken", f"hookyard_config_last_reload_successful{{{HERE}}} == 0", RED)

TO_HOOK = {
    "title": "${__field.labels.hook} in detail",
    "url": "/d/hookyard-hook?var-hook=${__field.labels.hook}&${datasource:queryparam}&${job:queryparam}&${instance:queryparam}&${__url_time_range}",
}


def rate(metric, labels, by=None, window="$__rate_interval"):
    """How often something happens in a second."""
    each = f"rate({metric}{{{labels}}}[{window}])"
    return f"sum by ({by}) ({each})" if by else f"sum({each})"


def grown(metric, labels, by=None):
    """How often something happened in the selected time range."""
    each = f"increase({metric}{{{labels}}}[$__range])"
    return f"sum by ({by}) ({each})" if by else f"sum({each})"


def each(metric, labels, by):
    """A gauge, one line for each value of a label."""
    return f"sum by ({by}) ({metric}{{{labels}}})", f"{{{{{by}}}}}"


def by(metric, labels, label):
    """A counter's rates, one line for each value of a label."""
    return rate(metric, labels, label), f"{{{{{label}}}}}"
