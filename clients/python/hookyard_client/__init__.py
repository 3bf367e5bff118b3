"""A client of hookyard, which runs hooks for AI-agent hosts: reports what is about to happen, and gets one verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from ._address import Address
from ._client import Hookyard
from ._events import ToolCall
from ._limits import Limits, Options
from ._outcome import Outcome
from ._problem import Problem

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._asyncio import AsyncHookyard
    from ._fake import FakeHookyard, fake, fake_async
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
    from ._client import SocketDoor

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
    from ._asyncio import AsyncHookyard, HttpDoor, LinesDoor

    address = Address(lines, socket, url, token)
    return AsyncHookyard(LinesDoor(address) if address.is_lines else HttpDoor(address), Limits(**options))


# What few programs need is imported where it is asked for.
_LATER = {"AsyncHookyard": "_asyncio", "FakeHookyard": "_fake", "fake": "_fake", "fake_async": "_fake"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_LATER.get(name, '_schema')}", __name__), name)
