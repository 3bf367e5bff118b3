"""A client of hookyard, which runs hooks for AI-agent hosts: reports what is about to happen, and gets one verdict."""

from __future__ import annotations

# That of `typing`, whose import takes as long as all of this.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from typing_extensions import Unpack

    from ._asyncio import AsyncHookyard
    from ._client import Hookyard
    from ._events import ToolCall
    from ._fake import FakeHookyard, fake, fake_async
    from ._limits import Options
    from ._outcome import Outcome
    from ._problem import Problem
    from ._schema import CanonicalEvent, CanonicalOutcome, EventKind, Note, Report, Target, Verdict

__all__ = [
    "AsyncHookyard", "CanonicalEvent", "CanonicalOutcome", "EventKind", "FakeHookyard", "Hookyard", "Note", "Outcome",
    "Problem", "Report", "Target", "ToolCall", "Verdict", "connect", "connect_async", "fake", "fake_async",
]


def connect(
    *,
    lines: str | None = None,
    socket: str | None = None,
    url: str | None = None,
    token: str | Callable[[], str] | None = None,
    **options: Unpack[Options],
) -> Hookyard:
    """A client of the daemon at an address, for any number of threads.

    `lines` is the path of the socket of lines (`listen.lines`), `socket` that of the event socket, `url` the address of
    `listen.tcp`, with the `token` of `listen.token_file`. With none of them: `HOOKYARD_LISTEN_LINES`,
    `HOOKYARD_LISTEN_SOCKET`, or the default socket. A daemon that is away is no error here: each event says so.
    """
    from ._address import Address
    from ._client import Hookyard, SocketDoor
    from ._limits import Limits

    return Hookyard(SocketDoor(Address(lines, socket, url, token)), Limits(**options))


def connect_async(
    *,
    lines: str | None = None,
    socket: str | None = None,
    url: str | None = None,
    token: str | Callable[[], str] | None = None,
    **options: Unpack[Options],
) -> AsyncHookyard:
    """The same for asyncio: with `lines`, all events share a connection."""
    from ._address import Address
    from ._asyncio import AsyncHookyard, HttpDoor, LinesDoor
    from ._limits import Limits

    address = Address(lines, socket, url, token)
    return AsyncHookyard(LinesDoor(address) if address.is_lines else HttpDoor(address), Limits(**options))


# Is imported where it is asked for: a hook with `hookyard_client.worker` needs none of it, and may start for each event.
_LATER = {
    "AsyncHookyard": "_asyncio", "FakeHookyard": "_fake", "Hookyard": "_client", "Outcome": "_outcome", "Problem": "_problem",
    "ToolCall": "_events", "fake": "_fake", "fake_async": "_fake",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_LATER.get(name, '_schema')}", __name__), name)
