"""What the adapters have in common."""

from __future__ import annotations

import json
from inspect import isawaitable
from typing import Any, Callable, Generator, Optional, Union

from .._outcome import Outcome

Place = Union[dict[str, Any], Callable[[Any], dict[str, Any]]]
"""What each event says beside its tool or model: the `run`, and if there are any `session`, `workspace` and `cwd`. Or a function
that says it of the framework's own context."""

Steps = Generator[Any, Any, Any]
"""What is done with threads and with asyncio alike: yields what to wait for, and gets what comes of it."""


class Halted(Exception):
    """A hook ended the run. It comes out where the host has started the run."""


def place_of(place: Place, context: Any) -> dict[str, Any]:
    return place(context) if callable(place) else place


def refusal(outcome: Outcome, is_approved: bool = False, halted: type[Exception] = Halted) -> Optional[str]:
    """What the model is told in place of a result, or None: go on. Raises `halted` if the run ends."""
    if outcome.verdict == "halt":
        raise halted(outcome.reason or "a hook ended the run")
    if outcome.proceeds or (outcome.verdict == "ask" and is_approved):
        return None
    return told(outcome)


def told(outcome: Outcome) -> str:
    """The reason of an outcome that does not proceed, with the notes for the model."""
    return "\n".join([outcome.reason or "a hook blocked this", *notes_of(outcome)])


def notes_of(outcome: Outcome, for_model: bool = True) -> list[str]:
    """The notes for the model, or the others."""
    return [note["text"] for note in outcome.notes if (note["kind"] == "additional_context") == for_model]


def jsonable(value: Any) -> Any:
    """The value as an event can have it: models of pydantic as objects, and anything else as its text."""
    return json.loads(json.dumps(value, default=lambda other: _dumped(other)))


def _dumped(value: Any) -> Any:
    return value.model_dump(mode="json", exclude_none=True) if hasattr(value, "model_dump") else str(value)


def drive(steps: Steps) -> Any:
    """Takes the steps without an event loop."""
    value = None
    try:
        while True:
            value = steps.send(value)
            if isawaitable(value):
                steps.close()
                raise TypeError("this client is for asyncio: call the agent with `ainvoke`, or use `hookyard_client.connect`")
    except StopIteration as end:
        return end.value


async def drive_async(steps: Steps) -> Any:
    """Takes the steps in an event loop."""
    value = None
    try:
        while True:
            value = steps.send(value)
            value = await value if isawaitable(value) else value
    except StopIteration as end:
        return end.value
