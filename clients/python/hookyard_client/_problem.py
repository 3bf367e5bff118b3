"""Why there is no verdict of hooks."""

from __future__ import annotations

from typing import Any, Literal

Retry = Literal["safe", "may_repeat", "never"]

UNKNOWN_VERDICT = "unknown_verdict"


class Problem(Exception):
    """An event without an answer, or with one that is none.

    `code` is a stable word: one of the daemon's error codes, or `down`, `lost`, `timeout`, `bad_answer`, `unknown_verdict`,
    `untrusted_socket`, `closed`. `hint` says what to do. `retry` says whether the event may be sent again: `safe`: no
    hook has run; `may_repeat`: hooks may have run; `never`: it fails again. `retry_after` is in seconds.
    """

    def __init__(self, code: str, message: str, hint: str, retry: Retry, retry_after: float = 0) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.retry: Retry = retry
        self.retry_after = retry_after


def down(where: str, why: object) -> Problem:
    return Problem("down", f"no daemon answers at {where}: {why}", "start `hookyard serve`, or correct the address", "safe")


def lost(why: object) -> Problem:
    hint = "look at the log of the daemon; give the event an `id`, so that it can be sent again without running hooks twice"
    return Problem("lost", f"the connection ended before the answer: {why}", hint, "may_repeat")


def bad_answer(why: str) -> Problem:
    hint = "check that this is a hookyard of a version that the client knows"
    return Problem("bad_answer", f"the answer is invalid: {why}", hint, "never")


def unknown_verdict(verdict: str) -> Problem:
    hint = "use a client of the daemon's version"
    return Problem(UNKNOWN_VERDICT, f"the verdict of the answer is {verdict}", hint, "never")


def bad_event(why: object) -> Problem:
    return Problem("bad_event", f"the event has no JSON form: {why}", "correct the event", "never")


def late(seconds: float) -> Problem:
    hint = "look at `hookyard status` for what is slow, or raise `timeout`"
    return Problem("timeout", f"no answer within {seconds:g} s", hint, "may_repeat")


def closed() -> Problem:
    return Problem("closed", "this client is closed", "connect again", "never")


def daemon_error(error: Any, retry_after: float = 0) -> Problem:
    """The error of a daemon, as it came."""
    error = error if isinstance(error, dict) else {}
    code, message, hint = error.get("code"), error.get("message"), error.get("hint")
    retry, seconds = error.get("retry"), error.get("retry_after", retry_after)
    if not isinstance(code, str) or not isinstance(message, str) or retry not in ("safe", "may_repeat", "never"):
        return bad_answer("an error without `code`, `message` and `retry`")
    seconds = seconds if type(seconds) in (int, float) else 0
    return Problem(code, message, hint if isinstance(hint, str) else "", retry, seconds)
