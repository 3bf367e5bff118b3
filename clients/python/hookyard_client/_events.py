"""A method for each kind of event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar

from ._limits import CallOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._schema import CanonicalEvent, EventKind

R = TypeVar("R")


class _ToolCallRequired(TypedDict):
    name: str
    input: Any


class ToolCall(_ToolCallRequired, total=False):
    """One call of a tool."""

    id: str
    """An id of the call: if its events are sent again, no hook runs twice."""


class More(CallOptions, total=False):
    """What a host may say with each event."""

    session: str
    """The conversation that the run is part of; by default the run's id."""
    workspace: str
    """The workspace whose hooks are asked; by default the one that contains `cwd`, or the only one."""
    cwd: str
    """The host's working directory."""
    id: str
    """An id of this event: if it is sent again, no hook runs twice."""
    wait: bool
    """`False`: an event that only reports something is answered at once, and its hooks run on."""


_PLACE = {"session": "session_id", "workspace": "workspace_id", "cwd": "cwd", "id": "event_id", "wait": "wait"}


class Events(Generic[R]):
    """The kinds of events. `R` is an outcome, or what is awaited for one."""

    def dispatch(self, event: CanonicalEvent, **options: Unpack[CallOptions]) -> R:
        """Sends an event with the fields of its JSON Schema, for what the other methods do not take.

        Never raises for want of an answer: then the verdict is that of `if_down`, and `problem` says why.
        """
        raise NotImplementedError

    def session_started(self, *, run: str, source: str | None = None, **more: Unpack[More]) -> R:
        """A session began; `source` says from where, such as `startup` or `resume`."""
        return self._send("session_started", run, more, source=source)

    def session_ended(self, *, run: str, reason: str | None = None, **more: Unpack[More]) -> R:
        """A session ended, and with it its run."""
        return self._send("session_ended", run, more, reason=reason)

    def prompt_submitted(self, *, run: str, prompt: Any, **more: Unpack[More]) -> R:
        """A person or program sent a prompt."""
        return self._send("prompt_submitted", run, more, prompt=prompt)

    def before_context_compact(
        self, *, run: str, context: Any = None, trigger: str | None = None, **more: Unpack[More]
    ) -> R:
        """The context is about to be compacted; `trigger` is `manual` or `auto`."""
        return self._send("before_context_compact", run, more, context=context, trigger=trigger)

    def after_context_compact(
        self, *, run: str, context: Any = None, trigger: str | None = None, **more: Unpack[More]
    ) -> R:
        """The context was compacted."""
        return self._send("after_context_compact", run, more, context=context, trigger=trigger)

    def before_context_build(self, *, run: str, context: Any = None, **more: Unpack[More]) -> R:
        """The context is about to be built from these parts."""
        return self._send("before_context_build", run, more, context=context)

    def after_context_build(self, *, run: str, context: Any = None, **more: Unpack[More]) -> R:
        """The context was built."""
        return self._send("after_context_build", run, more, context=context)

    def before_model_call(self, *, run: str, model: str, request: Any = None, **more: Unpack[More]) -> R:
        """A model is about to be called."""
        return self._send("before_model_call", run, more, model_ref=model, model_request=request)

    def after_model_call(
        self, *, run: str, model: str, request: Any = None, response: Any = None, **more: Unpack[More]
    ) -> R:
        """A model answered."""
        return self._send(
            "after_model_call", run, more, model_ref=model, model_request=request, model_response=response
        )

    def before_tool_selection(self, *, run: str, tools: Any = None, **more: Unpack[More]) -> R:
        """The tools that a model may choose from are about to be settled."""
        return self._send("before_tool_selection", run, more, tool_config=tools)

    def before_tool_dispatch(self, *, run: str, tool: ToolCall, **more: Unpack[More]) -> R:
        """A tool is about to run; run it with the `payload` of the outcome."""
        return self._send("before_tool_dispatch", run, more, **_fields_of(tool))

    def after_tool_dispatch(self, *, run: str, tool: ToolCall, output: Any = None, **more: Unpack[More]) -> R:
        """A tool ran; give the model the `payload` of the outcome."""
        return self._send("after_tool_dispatch", run, more, **_fields_of(tool), tool_output=output)

    def tool_failed(self, *, run: str, tool: ToolCall, error: str | None = None, **more: Unpack[More]) -> R:
        """A tool failed; `error` is for people and models to read."""
        return self._send("tool_failed", run, more, **_fields_of(tool), error=error)

    def permission_requested(self, *, run: str, tool: ToolCall, **more: Unpack[More]) -> R:
        """The host is about to ask a person whether a tool may run; hooks may answer in the person's place."""
        return self._send("permission_requested", run, more, **_fields_of(tool))

    def notification(
        self, *, run: str, type: str | None = None, message: str | None = None, **more: Unpack[More]
    ) -> R:
        """The host notifies a person."""
        return self._send("notification", run, more, notification_type=type, message=message)

    def agent_stopping(self, *, run: str, **more: Unpack[More]) -> R:
        """The agent is about to stop. A block means: keep working."""
        return self._send("agent_stopping", run, more)

    def subagent_started(self, *, run: str, agent: str | None = None, **more: Unpack[More]) -> R:
        """A subagent began; `agent` is its type."""
        return self._send("subagent_started", run, more, agent_type=agent)

    def subagent_stopping(self, *, run: str, agent: str | None = None, **more: Unpack[More]) -> R:
        """A subagent is about to stop. A block means: keep working."""
        return self._send("subagent_stopping", run, more, agent_type=agent)

    def run_completed(self, *, run: str, trigger: str | None = None, **more: Unpack[More]) -> R:
        """The run completed; `trigger` says what had started it, such as `user`."""
        return self._send("run_completed", run, more, trigger_type=trigger, run_status="completed")

    def run_failed(self, *, run: str, trigger: str | None = None, **more: Unpack[More]) -> R:
        """The run failed."""
        return self._send("run_failed", run, more, trigger_type=trigger, run_status="failed")

    def host_event(self, *, run: str, name: str, **more: Unpack[More]) -> R:
        """Something happened that only this host has a name for."""
        return self._send("host_event", run, more, host_event=name)

    def _send(self, kind: EventKind, run: str, more: Any, **fields: Any) -> R:
        event: dict[str, Any] = {"event": kind, "session_id": run, "run_id": run}
        options = {}
        for name, value in more.items():
            if name in _PLACE:
                fields[_PLACE[name]] = value
            else:
                options[name] = value
        # An input or an output may be `None`; a field that the host does not have is left out.
        event.update((name, value) for name, value in fields.items() if value is not None or name.startswith("tool_"))
        return self.dispatch(event, **options)  # type: ignore[arg-type]


def _fields_of(tool: ToolCall) -> dict[str, Any]:
    fields = {"tool_name": tool["name"], "tool_input": tool["input"]}
    call_id = tool.get("id")
    return fields if call_id is None else {**fields, "tool_call_id": call_id}
