"""A hookyard without a daemon, for the tests of a host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, Union

from ._client import Hookyard
from ._json import parse
from ._limits import Attempts, Limits, Options
from ._problem import closed
from ._schema import EVENT_KINDS

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._asyncio import AsyncHookyard

FakeAnswer = Union[Mapping[str, Any], Callable[[Any], Mapping[str, Any]]]
"""Parts of an outcome, or a function that makes them of an event. It may raise a `Problem`: then there is no answer."""


class FakeDoor:
    """Answers events of these kinds so, and `proceed` to all others."""

    def __init__(self, answers: Mapping[str, FakeAnswer]) -> None:
        for kind in answers:
            if kind not in EVENT_KINDS:
                raise ValueError(f"there is no event of the kind {kind!r}")
        self._answers, self._is_closed = answers, False
        self.events: list[Any] = []

    def ask(self, event: bytes, trace: Optional[str], attempts: Attempts) -> Any:
        if self._is_closed:
            raise closed()
        read = parse(event.decode())
        self.events.append(read)
        answer = self._answers.get(read["event"], {})
        ids = {"decision_id": f"fake-{len(self.events)}", "event": read["event"], "snapshot_version": 1}
        parts: Any = answer(read) if callable(answer) else answer
        return {**ids, "verdict": "proceed", "suppress_output": False, "hooks": [], **parts}

    def close(self) -> None:
        self._is_closed = True


class _AsyncFakeDoor(FakeDoor):
    async def ask(self, event: bytes, trace: Optional[str], attempts: Attempts) -> Any:
        return super().ask(event, trace, attempts)


class FakeHookyard(Hookyard):
    """A hookyard that answers what a test says."""

    events: list[Any]
    """The events so far, as a daemon would have got them."""


def fake(answers: Mapping[str, FakeAnswer] = {}, **options: Unpack[Options]) -> FakeHookyard:
    """Answers events of these kinds so, and `proceed` to all others."""
    door = FakeDoor(answers)
    yard = FakeHookyard(door, Limits(**{"retry_for": 0, **options}))  # type: ignore[arg-type]
    yard.events = door.events
    return yard


def fake_async(answers: Mapping[str, FakeAnswer] = {}, **options: Unpack[Options]) -> AsyncHookyard:
    """The same for asyncio; `events` has the events so far."""
    from ._asyncio import AsyncHookyard

    door = _AsyncFakeDoor(answers)
    yard = AsyncHookyard(door, Limits(**{"retry_for": 0, **options}))  # type: ignore[arg-type]
    yard.events = door.events  # type: ignore[attr-defined]
    return yard
