"""What a host gets for an event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from ._problem import Problem, bad_answer, unknown_verdict
from ._schema import VERDICTS

if TYPE_CHECKING:
    from ._schema import CanonicalEvent, EventKind, Note, Report, Target, Verdict

_TARGET_OF: dict[str, Target] = {
    "prompt_submitted": "prompt",
    "before_context_compact": "context",
    "after_context_compact": "context",
    "before_context_build": "context",
    "after_context_build": "context",
    "before_model_call": "model_request",
    "after_model_call": "model_response",
    "before_tool_selection": "tool_config",
    "before_tool_dispatch": "tool_input",
    "after_tool_dispatch": "tool_output",
    "permission_requested": "tool_input",
}


class Outcome:
    """The answer of hookyard to one event, or what `if_down` says in its place."""

    __slots__ = (
        "event", "verdict", "proceeds", "payload", "reason", "by", "patched", "notes", "suppress_output", "hooks",
        "decision_id", "snapshot_version", "native", "problem",
    )
    event: EventKind
    verdict: Verdict
    proceeds: bool
    """Whether to go on: the verdict is `proceed` or `allow`."""
    payload: Any
    """The part of the event that hooks may change (a tool's input or output, the prompt, …), with their changes: go on with this."""
    reason: Optional[str]
    """The reason, for a person or a model."""
    by: Optional[str]
    """The hook that decided."""
    patched: dict[Target, Any]
    """What hooks have changed, with the final values."""
    notes: list[Note]
    suppress_output: bool
    """Whether to hide the tool's output."""
    hooks: list[Report]
    """How each hook ended."""
    decision_id: Optional[str]
    """Id of this answer, also used in logs."""
    snapshot_version: Optional[int]
    native: dict[str, Any]
    problem: Optional[Problem]
    """Why no hook was asked or understood: the verdict is that of `if_down`."""

    def __init__(self, event: CanonicalEvent, answer: dict[str, Any], problem: Optional[Problem] = None) -> None:
        get = answer.get
        self.event = event["event"]
        self.verdict = answer["verdict"]
        self.proceeds = self.verdict in ("proceed", "allow")
        self.reason, self.by = get("reason"), get("by")
        self.patched = get("patched", {})
        self.notes, self.hooks = get("notes", []), get("hooks", [])
        self.suppress_output = get("suppress_output", False)
        self.decision_id, self.snapshot_version = get("decision_id"), get("snapshot_version")
        self.native = get("native", {})
        self.problem = problem
        target = _TARGET_OF.get(self.event)
        self.payload = None if target is None else self.patched.get(target, event.get(target))

    def __repr__(self) -> str:
        fields = ((name, getattr(self, name)) for name in self.__slots__)
        return f"Outcome({', '.join(f'{name}={value!r}' for name, value in fields if value not in (None, [], {}))})"


def read_outcome(answer: Any, event: CanonicalEvent) -> Outcome:
    """Reads the outcome of an event. Raises a `Problem` if it is none; then there is no verdict."""
    if not isinstance(answer, dict):
        raise bad_answer("it is not an object")
    get = answer.get
    verdict = get("verdict")
    if not isinstance(verdict, str):
        raise bad_answer(f"its verdict is {_shown(verdict)}")
    if verdict not in VERDICTS:
        raise unknown_verdict(_shown(verdict))
    if get("event") != event["event"]:
        raise bad_answer(f"it is about {_shown(get('event'))}, not about {event['event']!r}")
    if not isinstance(get("patched", {}), dict):
        raise bad_answer("its `patched` is not an object")
    if not isinstance(get("notes", []), list) or not isinstance(get("hooks"), list):
        raise bad_answer("its `notes` or `hooks` are not a list")
    if not isinstance(get("reason", ""), str):
        raise bad_answer("its `reason` is not a text")
    if not isinstance(get("suppress_output"), bool):
        raise bad_answer("its `suppress_output` is not a boolean")
    return Outcome(event, answer)


def outcome_without(problem: Problem, event: CanonicalEvent, if_down: str) -> Outcome:
    """The outcome of an event without a verdict of hooks."""
    # After an unknown verdict: hooks have said something, and nobody knows what. That is no reason to go on.
    proceeds = if_down == "allow" and problem.code != "unknown_verdict"
    reason = f"hookyard gave no verdict: {problem.message}; {problem.hint}"
    return Outcome(event, {"verdict": "proceed" if proceeds else "block", "reason": reason}, problem)


def _shown(value: object) -> str:
    """A part of an answer, as far as a person reads it."""
    if isinstance(value, str):
        return repr(value[:40])
    return "missing" if value is None else f"a {type(value).__name__}"
