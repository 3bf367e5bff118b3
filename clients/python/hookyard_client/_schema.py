"""Written by clients/schema.py from config/schema: do not edit."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

EventKind = Literal["session_started", "session_ended", "prompt_submitted", "before_context_compact", "after_context_compact", "before_context_build", "after_context_build", "before_model_call", "after_model_call", "before_tool_selection", "before_tool_dispatch", "after_tool_dispatch", "tool_failed", "permission_requested", "notification", "agent_stopping", "subagent_started", "subagent_stopping", "run_completed", "run_failed", "host_event"]
EVENT_KINDS: tuple[EventKind, ...] = ("session_started", "session_ended", "prompt_submitted", "before_context_compact", "after_context_compact", "before_context_build", "after_context_build", "before_model_call", "after_model_call", "before_tool_selection", "before_tool_dispatch", "after_tool_dispatch", "tool_failed", "permission_requested", "notification", "agent_stopping", "subagent_started", "subagent_stopping", "run_completed", "run_failed", "host_event")
Verdict = Literal["proceed", "allow", "ask", "block", "halt"]
VERDICTS: tuple[Verdict, ...] = ("proceed", "allow", "ask", "block", "halt")
Target = Literal["prompt", "context", "model_request", "model_response", "tool_config", "tool_input", "tool_output"]
TARGETS: tuple[Target, ...] = ("prompt", "context", "model_request", "model_response", "tool_config", "tool_input", "tool_output")


class _CanonicalEventRequired(TypedDict):
    event: EventKind
    """What happened."""
    run_id: str
    """Id of the run within it. Hosts without run ids send the session's id."""
    session_id: str
    """Id of the conversation: 1 to 256 bytes without control characters."""


class CanonicalEvent(_CanonicalEventRequired, total=False):
    """An event of a run, as a host sends it to hookyard. Unknown fields are kept as they are."""

    agent_name: str | None
    """The agent of the run."""
    agent_type: str | None
    """The kind of subagent."""
    context: Any
    """The context, with its `messages`."""
    cwd: str | None
    """The host's working directory."""
    effective_agent_name: str | None
    """The acting agent, if it is another one (a subagent)."""
    event_id: str | None
    """The host's id of this event. A second event with the same id gets the first answer; no hook runs twice."""
    host_event: str | None
    """The name of an event that has no canonical kind, with `event: host_event`."""
    message: str | None
    """The text of the notification."""
    model_ref: str | None
    """The model that is called."""
    model_request: Any
    """The request to a model."""
    model_response: Any
    """The answer of a model."""
    notification_type: str | None
    """The kind of notification."""
    prompt: Any
    """The prompt."""
    reason: str | None
    """Why the session ended."""
    run_status: str | None
    """How the run ended."""
    source: str | None
    """Where the session came from."""
    tool_call_id: str | None
    """Id of the tool call. Two events of one kind with the same call are the same event sent twice."""
    tool_config: Any
    """The tools that the model may choose from."""
    tool_input: Any
    """The input of a tool call."""
    tool_name: str | None
    """The tool's name."""
    tool_output: Any
    """The output of a tool call."""
    trigger: str | None
    """What triggered the compaction."""
    trigger_type: str | None
    """What triggered the run."""
    wait: bool
    """Whether the host waits for the outcome. With `false`, a lifecycle event is answered `proceed` at once. Default: true."""
    workspace_id: str | None
    """Id of the workspace."""


class Note(TypedDict):
    """A note of a hook."""

    hook: str
    """The hook."""
    kind: Literal["system_message", "additional_context", "loop_broken"]
    """For whom: `system_message` and `loop_broken` are for the person at the host, `additional_context` is for the model."""
    text: str
    """The text."""


class _ReportRequired(TypedDict):
    duration_ms: float
    """How long it ran, in milliseconds."""
    ended: Literal["completed", "failed", "timed_out", "spawn_failed", "invalid_output", "output_too_large", "cancelled", "shed", "untrusted"]
    """How the invocation ended."""
    handler: Literal["command", "http", "prompt", "agent", "rule", "rego", "native"]
    """The type of its handler."""
    hook: str
    """The hook."""


class Report(_ReportRequired, total=False):
    """How one hook ended."""

    error: str
    """Why it failed."""
    patched: list[Target]
    """What it changed."""
    queued_ms: float
    """How long it waited before it ran, in milliseconds: for a place in its pool, at the hook's own limit, or for its workers. Left out below 10 ms."""
    tokens: Tokens
    """The tokens that a model used, if it reported them."""
    verdict: Verdict
    """Its verdict, after its policies; left out for `proceed`."""
    warnings: list[str]
    """Warnings about the invocation and its answer."""


class Tokens(TypedDict):
    """The tokens of model calls."""

    input: int
    """Tokens read."""
    output: int
    """Tokens written."""


class _CanonicalOutcomeRequired(TypedDict):
    decision_id: str
    """Id of this answer, also used in logs."""
    event: EventKind
    """The kind of the event."""
    hooks: list[Report]
    """How each hook ended, in the order of the plan."""
    snapshot_version: int
    """The version of the hook registry; it grows with each reload."""
    suppress_output: bool
    """Whether to hide the tool's output."""
    verdict: Verdict
    """What the host should do. `proceed`: no hook has an opinion; `allow`: proceed without asking a person; `ask`: ask a person; `block`: do not proceed; `halt`: end the run."""


class CanonicalOutcome(_CanonicalOutcomeRequired, total=False):
    """The answer of hookyard to one event."""

    by: str
    """The hook that decided."""
    native: dict[str, Any]
    """Fields without a canonical meaning, from hooks of the host's own dialect."""
    notes: list[Note]
    """Notes of hooks, in the order of the plan."""
    patched: dict[Target, Any]
    """The parts of the payload that hooks changed, with their final values. Use these."""
    reason: str
    """The reason, for a person or a model."""
