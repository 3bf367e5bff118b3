"""A client of hookyard for asyncio: asks about events, and decides where there is no answer."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Awaitable, Callable, Optional, Protocol

from ._address import Address
from ._events import Events
from ._json import event_bytes
from ._limits import Attempts, CallOptions, Limits
from ._outcome import Outcome, outcome_without, read_outcome
from ._problem import Problem, bad_answer, closed, down, late, lost
from ._wire import CONNECTION, DRAINING, LONGEST_REST, HttpReader, LineSplitter, cut, for_balancers, line_of, read_line, request_of

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from ._schema import CanonicalEvent

_READ_BYTES = 256 << 10

_MOST_UNSENT = 16 << 20
"""What a daemon may leave unread of a connection, in bytes. Further events wait here, where they can be cancelled."""

_Flight = tuple["asyncio.Future[Any]", Attempts]
_Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class AsyncDoor(Protocol):
    """How events get to a daemon."""

    async def ask(self, event: bytes, trace: Optional[str], attempts: Attempts) -> Any:
        """Sends an event, which is JSON, and returns the outcome as it came. Raises a `Problem`."""

    def close(self) -> None:
        """Ends all connections."""


class AsyncHookyard(Events[Awaitable[Outcome]]):
    """A client of one daemon. Cancelling what awaits an outcome cancels the event, and its hooks."""

    def __init__(self, door: AsyncDoor, limits: Limits) -> None:
        self._door, self._limits = door, limits

    async def dispatch(self, event: CanonicalEvent, **options: Unpack[CallOptions]) -> Outcome:
        limits = self._limits.of_call(options)  # type: ignore[arg-type]
        try:
            return read_outcome(await self._ask(event, limits), event)
        except Problem as error:
            problem = error
        except Exception as error:
            problem = Problem("failed", repr(error), "report this", "never")
        return limits.report(problem, outcome_without(problem, event, limits.if_down))

    async def close(self) -> None:
        """Ends the connections. Events in flight have no answer."""
        self._door.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _ask(self, event: CanonicalEvent, limits: Limits) -> Any:
        data, trace, attempts = event_bytes(event), limits.trace(), Attempts(event, limits)
        while True:
            try:
                return await self._door.ask(data, trace, attempts)
            except Problem as problem:
                pause = attempts.pause(problem)
            await asyncio.sleep(pause)


class LinesDoor:
    """Sends events as lines, many at the same time on one connection."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._connection: Optional[_LinesConnection] = None
        self._connecting: Optional[asyncio.Task[_LinesConnection]] = None
        # The one in use, and those that the daemon drains.
        self._open_connections: set[_LinesConnection] = set()
        self._is_closed = False

    async def ask(self, event: bytes, trace: Optional[str], attempts: Attempts) -> Any:
        if self._is_closed:
            raise closed()
        connection = self._connection
        if connection is None or not connection.takes_more():
            connection = await self._connect(attempts)
        return await connection.ask(event, trace, attempts)

    def close(self) -> None:
        self._is_closed = True
        for connection in list(self._open_connections):
            connection.fail(closed())

    async def _connect(self, attempts: Attempts) -> _LinesConnection:
        loop = asyncio.get_running_loop()
        if self._connecting is None or self._connecting.done() or self._connecting.get_loop() is not loop:
            if self._connection is not None:
                self._connection.end()
            self._connecting = loop.create_task(self._open(loop))
        # Others may wait for it, too.
        connection: _LinesConnection = await _until(attempts, asyncio.shield(self._connecting))
        return connection

    async def _open(self, loop: asyncio.AbstractEventLoop) -> _LinesConnection:
        self._address.check()
        try:
            _, connection = await loop.create_unix_connection(lambda: _LinesConnection(loop, self._open_connections), self._address.socket)
        except OSError as error:
            raise down(str(self._address), error.strerror or error) from None
        self._connection = connection
        if self._is_closed:
            connection.fail(closed())
        return connection


class _LinesConnection(asyncio.Protocol):
    """One connection, with the events in flight on it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, open_connections: set[_LinesConnection]) -> None:
        self._loop, self._open_connections = loop, open_connections
        self._lines = LineSplitter()
        # By id. An event that was cancelled has an id until it is answered, and nobody waits for it.
        self._flights: dict[int, Optional[_Flight]] = {}
        self._unsent: list[bytes] = []
        self._unsent_size = 0
        # Events that wait until the daemon has read others, by id.
        self._held: dict[int, bytes] = {}
        # Goes off at the first deadline of an event in flight, or before it.
        self._timer: Optional[asyncio.TimerHandle] = None
        self._last_id = 0
        self._last_use = time.monotonic()
        self._takes_more = True
        self._farewell: Optional[Problem] = None

    def takes_more(self) -> bool:
        # That of an `asyncio.run` that has ended does not run any more.
        if not self._takes_more or not self._loop.is_running():
            return False
        return bool(self._flights) or time.monotonic() - self._last_use <= LONGEST_REST

    async def ask(self, event: bytes, trace: Optional[str], attempts: Attempts) -> Any:
        if not self._takes_more:
            raise down("a connection that has just ended", "the daemon has closed it")
        self._last_id += 1
        number = self._last_id
        future = self._loop.create_future()
        self._flights[number] = (future, attempts)
        line = line_of(number, event, trace)
        if self._held or self._is_full():
            self._held[number] = line
        else:
            self._write(line)
        self._watch(attempts.deadline)
        try:
            return await future
        except asyncio.CancelledError:
            self._cancel(number)
            raise

    def end(self) -> None:
        """Sends no more, and reads the answers that are due."""
        if self._takes_more and not self._loop.is_closed():
            self._takes_more = False
            self._unsent += self._held.values()
            self._held.clear()
            self._flush()
            self._transport.write_eof()

    def fail(self, problem: Problem) -> None:
        """Ends the connection, and everything in flight on it."""
        self._takes_more = False
        flights, self._flights = self._flights, {}
        self._held.clear()
        if self._loop.is_closed():
            return
        self._transport.abort()
        if self._timer is not None:
            self._timer.cancel()
        for flight in flights.values():
            if flight is not None and not flight[0].done():
                flight[0].set_exception(problem)

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        transport.set_write_buffer_limits(_MOST_UNSENT)
        self._open_connections.add(self)

    def data_received(self, data: bytes) -> None:
        self._last_use = time.monotonic()
        try:
            for line in self._lines.feed(data):
                self._take(*read_line(line))
        except Problem as problem:
            self.fail(problem)

    def resume_writing(self) -> None:
        self._release()

    def eof_received(self) -> None:
        self.fail(cut(self._farewell))

    def connection_lost(self, exc: Optional[Exception]) -> None:
        self._open_connections.discard(self)
        if exc is None or self._farewell is not None:
            self.fail(cut(self._farewell))
        else:
            self.fail(lost(getattr(exc, "strerror", None) or exc))

    def _take(self, number: Any, outcome: Any, problem: Optional[Problem]) -> None:
        if number == DRAINING:
            return self.end()
        if number == CONNECTION:
            self._farewell = problem
            return self.end()
        if number not in self._flights:
            raise bad_answer("its id is that of no event in flight")
        flight = self._flights.pop(number)
        if flight is None or flight[0].done():
            return
        if problem is not None:
            flight[0].set_exception(problem)
        else:
            flight[0].set_result(outcome)

    def _write(self, line: bytes) -> None:
        """Writes what one turn of the event loop sends together."""
        if not self._unsent:
            self._loop.call_soon(self._flush)
        self._unsent.append(line)
        self._unsent_size += len(line)

    def _flush(self) -> None:
        if self._unsent:
            self._transport.write(b"".join(self._unsent))
            self._unsent.clear()
            self._unsent_size = 0
        self._release()

    def _is_full(self) -> bool:
        return self._unsent_size + int(self._transport.get_write_buffer_size()) > _MOST_UNSENT

    def _release(self) -> None:
        while self._held and not self._is_full():
            number = next(iter(self._held))
            self._write(self._held.pop(number))

    def _watch(self, deadline: float) -> None:
        if self._timer is None or deadline < self._timer.when():
            if self._timer is not None:
                self._timer.cancel()
            # The loop has the same clock.
            self._timer = self._loop.call_at(deadline, self._expire)

    def _expire(self) -> None:
        self._timer = None
        now = time.monotonic()
        for number, flight in list(self._flights.items()):
            if flight is None:
                continue
            future, attempts = flight
            if attempts.deadline > now:
                self._watch(attempts.deadline)
            elif not future.done():
                self._cancel(number)
                future.set_exception(late(attempts.timeout))

    def _cancel(self, number: int) -> None:
        if self._flights.get(number) is not None:
            if self._held.pop(number, None) is not None:
                del self._flights[number]
                return
            self._flights[number] = None
            if self._takes_more:
                self._write(b'{"cancel":%d}\n' % number)


class HttpDoor:
    """Sends events over HTTP. Connections are kept for further events."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._rested: list[tuple[_Streams, float, asyncio.AbstractEventLoop]] = []
        self._in_use: set[asyncio.StreamWriter] = set()
        self._is_closed = False

    async def ask(self, event: bytes, trace: Optional[str], attempts: Attempts) -> Any:
        if self._is_closed:
            raise closed()
        return await _until(attempts, self._post(event, trace, attempts))

    def close(self) -> None:
        self._is_closed = True
        for (_, writer), _, loop in self._rested:
            if not loop.is_closed():
                writer.close()
        self._rested.clear()
        for writer in self._in_use:
            writer.transport.abort()

    async def _post(self, event: bytes, trace: Optional[str], attempts: Attempts) -> Any:
        address, http = self._address, HttpReader()
        request = request_of(address.path, address.authority, event, trace, address.token(), for_balancers(attempts.event))
        reader, writer = self._take() or await self._open()
        self._in_use.add(writer)
        is_good = False
        try:
            writer.write(request)
            await writer.drain()
            while not http.is_whole:
                chunk = await reader.read(_READ_BYTES)
                if not chunk:
                    raise closed() if self._is_closed else cut(None)
                http.feed(chunk)
            is_good = http.keeps_connection and not self._is_closed
        except OSError as error:
            raise closed() if self._is_closed else lost(error.strerror or error) from None
        finally:
            self._in_use.discard(writer)
            if is_good:
                self._rested.append(((reader, writer), time.monotonic(), asyncio.get_running_loop()))
            else:
                writer.close()
        return http.answer()

    def _take(self) -> Optional[_Streams]:
        here = asyncio.get_running_loop()
        while self._rested:
            (reader, writer), last_use, loop = self._rested.pop()
            if loop is not here:
                continue
            # What has come without a request is an end, or nothing that an answer begins with.
            is_quiet = not reader.at_eof() and not reader._buffer and reader.exception() is None  # type: ignore[attr-defined]
            if is_quiet and not writer.is_closing() and time.monotonic() - last_use <= LONGEST_REST:
                return reader, writer
            writer.close()
        return None

    async def _open(self) -> _Streams:
        address = self._address
        address.check()
        try:
            if address.socket is not None:
                return await asyncio.open_unix_connection(address.socket)
            return await asyncio.open_connection(address.host, address.port, ssl=address.is_secure or None)
        except OSError as error:
            raise down(str(address), error.strerror or error) from None


async def _until(attempts: Attempts, awaited: Awaitable[Any]) -> Any:
    try:
        return await asyncio.wait_for(awaited, attempts.deadline - time.monotonic())
    except (asyncio.TimeoutError, TimeoutError):
        raise late(attempts.timeout) from None
