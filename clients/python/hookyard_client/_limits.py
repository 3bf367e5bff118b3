"""How long an event is tried, and what is answered without an answer."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any, Callable, Literal, Optional, TypedDict, Union

from ._outcome import Outcome
from ._problem import Problem

if TYPE_CHECKING:
    from ._schema import CanonicalEvent

_TRACEPARENT = re.compile("(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


class CallOptions(TypedDict, total=False):
    """What holds for one event."""

    if_down: Literal["block", "allow"]
    """What to answer if no hook could be asked, whatever the reason. Default: `block`."""
    timeout: float
    """The longest that the event may take, in seconds. Default: 600."""
    retry_for: float
    """How long to send the event again where that is safe, as while the daemon restarts, in seconds. Default: 5 to block, else 0."""
    traceparent: Union[str, Callable[[], Optional[str]], None]
    """The W3C trace context of the event, or a function that says it."""


class Options(CallOptions, total=False):
    """What holds for all events of a client."""

    on_problem: Callable[[Problem, Outcome], object]
    """Is told of each event without a verdict of hooks. Without it, an event that goes on all the same is a warning in the log."""


class Limits:
    """The options of one event. Raises if they are no such options."""

    __slots__ = ("if_down", "timeout", "retry_for", "_traceparent", "on_problem")

    def __init__(
        self,
        if_down: Any = "block",
        timeout: float = 600.0,
        retry_for: Optional[float] = None,
        traceparent: Any = None,
        on_problem: Optional[Callable[[Problem, Outcome], object]] = None,
    ) -> None:
        if if_down not in ("block", "allow"):
            raise ValueError(f"if_down is {if_down!r}, not 'block' or 'allow'")
        if not 0 < timeout < 2**31:
            raise ValueError(f"timeout is {timeout!r}, not a time")
        if retry_for is not None and not retry_for >= 0:
            raise ValueError(f"retry_for is {retry_for!r}, not a time")
        self.if_down, self.timeout, self.retry_for = if_down, timeout, retry_for
        self._traceparent, self.on_problem = traceparent, on_problem

    def of_call(self, options: dict[str, Any]) -> Limits:
        """With the options of one event."""
        if not options:
            return self
        own = {"if_down": self.if_down, "timeout": self.timeout, "retry_for": self.retry_for}
        if "on_problem" in options:
            raise TypeError("on_problem is an option of the client")
        return Limits(**{**own, "traceparent": self._traceparent, **options}, on_problem=self.on_problem)

    def trace(self) -> Optional[str]:
        """An invalid one is ignored, as the daemon does."""
        trace = self._traceparent() if callable(self._traceparent) else self._traceparent
        return trace if isinstance(trace, str) and _TRACEPARENT.fullmatch(trace) else None

    def report(self, problem: Problem, outcome: Outcome) -> Outcome:
        """Tells of an event without a verdict."""
        if self.on_problem is not None:
            self.on_problem(problem, outcome)
        elif outcome.proceeds:
            import logging

            logging.getLogger("hookyard").warning("%s", outcome.reason)
        return outcome


class Attempts:
    """When an event is sent again, and until when."""

    _FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 0.16
    _GUARD_RETRIES_FOR = 5.0

    def __init__(self, event: CanonicalEvent, limits: Limits) -> None:
        start = time.monotonic()
        retry_for = limits.retry_for
        if retry_for is None:
            retry_for = self._GUARD_RETRIES_FOR if limits.if_down == "block" else 0.0
        self.deadline = start + limits.timeout
        self.timeout = limits.timeout
        self._last = min(self.deadline, start + retry_for)
        self._has_id = event.get("event_id") is not None or event.get("tool_call_id") is not None
        self._pause = self._FIRST_PAUSE
        self.event = event
        """What is sent."""

    def pause(self, problem: Problem) -> float:
        """How long to wait before the next attempt. Raises the problem if there is none."""
        pause = max(self._pause, problem.retry_after)
        may_retry = problem.retry == "safe" or (problem.retry == "may_repeat" and self._has_id)
        if not may_retry or time.monotonic() + pause >= self._last:
            raise problem
        self._pause = min(2 * self._pause, self._LONGEST_PAUSE)
        return pause
