"""A client of hookyard for programs with threads: asks about events, and decides where there is no answer."""

from __future__ import annotations

import os
import select
import socket
import time
from typing import TYPE_CHECKING, Any, Optional, Protocol

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

_READ_BYTES = 64 << 10


class Door(Protocol):
    """How events get to a daemon."""

    def ask(self, event: bytes, trace: Optional[str], attempts: Attempts) -> Any:
        """Sends an event, which is JSON, and returns the outcome as it came. Raises a `Problem`."""

    def close(self) -> None:
        """Ends all connections."""


class Hookyard(Events[Outcome]):
    """A client of one daemon, for any number of threads. Each event that waits for an answer has a connection of its own."""

    def __init__(self, door: Door, limits: Limits) -> None:
        self._door, self._limits = door, limits

    def dispatch(self, event: CanonicalEvent, **options: Unpack[CallOptions]) -> Outcome:
        limits = self._limits.of_call(options)  # type: ignore[arg-type]
        try:
            return read_outcome(self._ask(event, limits), event)
        except Problem as error:
            problem = error
        except Exception as error:
            problem = Problem("failed", repr(error), "report this", "never")
        return limits.report(problem, outcome_without(problem, event, limits.if_down))

    def close(self) -> None:
        """Ends the connections. Events in flight have no answer."""
        self._door.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, event: CanonicalEvent, limits: Limits) -> Any:
        data, trace, attempts = event_bytes(event), limits.trace(), Attempts(event, limits)
        while True:
            try:
                return self._door.ask(data, trace, attempts)
            except Problem as problem:
                pause = attempts.pause(problem)
            time.sleep(pause)


class SocketDoor:
    """Sends events over connections that are kept for further events."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._rested: list[_Connection] = []
        self._process = os.getpid()
        self._is_closed = False
        self._in_use: set[_Connection] = set()

    def ask(self, event: bytes, trace: Optional[str], attempts: Attempts) -> Any:
        connection = self._take(attempts)
        self._in_use.add(connection)
        try:
            return connection.ask(event, trace, attempts)
        except (OSError, Problem) as error:
            raise self._problem(error, attempts) from None
        finally:
            self._in_use.discard(connection)
            if connection.is_good and not self._is_closed:
                self._rested.append(connection)
            else:
                connection.close()

    def close(self) -> None:
        self._is_closed = True
        while self._rested:
            self._rested.pop().close()
        for connection in list(self._in_use):
            connection.end()

    def _take(self, attempts: Attempts) -> _Connection:
        if self._is_closed:
            raise closed()
        if self._process != os.getpid():
            # The connections are those of the parent, which reads from them.
            self._rested, self._in_use, self._process = [], set(), os.getpid()
        while self._rested:
            try:
                connection = self._rested.pop()
            except IndexError:
                break
            if connection.is_fresh():
                return connection
            connection.close()
        return self._open(attempts)

    def _open(self, attempts: Attempts) -> _Connection:
        address = self._address
        address.check()
        try:
            left = max(attempts.deadline - time.monotonic(), 0.001)
            if address.socket is None:
                stream = socket.create_connection((address.host, address.port), left)
                stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if address.is_secure:
                    import ssl

                    stream = ssl.create_default_context().wrap_socket(stream, server_hostname=address.host)
            else:
                stream = socket.socket(socket.AF_UNIX)
                stream.settimeout(left)
                stream.connect(address.socket)
        except OSError as error:
            raise down(str(address), error.strerror or error) from None
        return _LinesConnection(stream) if address.is_lines else _HttpConnection(stream, address)

    def _problem(self, error: OSError | Problem, attempts: Attempts) -> Problem:
        if self._is_closed:
            return closed()
        if isinstance(error, Problem):
            return error
        return late(attempts.timeout) if isinstance(error, TimeoutError) else lost(error.strerror or error)


class _Connection:
    """One connection, for one event at a time."""

    def __init__(self, stream: socket.socket) -> None:
        stream.setblocking(False)
        self.stream = stream
        self._poll = select.poll()
        self._poll.register(stream)
        self.is_good = True
        """Whether it may be used for another event."""
        self._last_use = time.monotonic()

    def ask(self, event: bytes, trace: Optional[str], attempts: Attempts) -> Any:
        """Raises a `Problem`, or an `OSError`."""
        raise NotImplementedError

    def is_fresh(self) -> bool:
        """Whether the daemon still waits for events, as far as one can see: it has sent nothing, also no end."""
        if time.monotonic() - self._last_use > LONGEST_REST:
            return False
        try:
            self.stream.recv(1)
        except OSError as error:
            return _would_block(error)
        return False

    def end(self) -> None:
        """Wakes whoever waits for an answer."""
        try:
            self.stream.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def close(self) -> None:
        self.stream.close()

    def send(self, data: bytes, attempts: Attempts) -> None:
        # Until there is an answer.
        self.is_good = False
        left = memoryview(data)
        while left:
            try:
                left = left[self.stream.send(left) :]
            except OSError as error:
                self._wait(error, select.POLLOUT, attempts)

    def receive(self, attempts: Attempts) -> bytes:
        while True:
            try:
                return self.stream.recv(_READ_BYTES)
            except OSError as error:
                self._wait(error, select.POLLIN, attempts)

    def rest(self, is_good: bool) -> None:
        self.is_good = is_good
        self._last_use = time.monotonic()

    def _wait(self, error: OSError, event: int, attempts: Attempts) -> None:
        if not _would_block(error):
            raise error
        left = attempts.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._poll.modify(self.stream, event)
        self._poll.poll(left * 1000)


class _LinesConnection(_Connection):
    def __init__(self, stream: socket.socket) -> None:
        super().__init__(stream)
        self._lines = LineSplitter()
        self._last_id = 0

    def ask(self, event: bytes, trace: Optional[str], attempts: Attempts) -> Any:
        self._last_id += 1
        self.send(line_of(self._last_id, event, trace), attempts)
        is_good, farewell = True, None
        while chunk := self.receive(attempts):
            lines = self._lines.feed(chunk)
            while lines:
                number, outcome, problem = read_line(lines.pop(0))
                if number == DRAINING:
                    is_good = False
                elif number == CONNECTION:
                    is_good, farewell = False, problem
                elif number != self._last_id:
                    raise bad_answer("its id is that of no event in flight")
                else:
                    self.rest(is_good and not lines)
                    if problem is not None:
                        raise problem
                    return outcome
        raise cut(farewell)


class _HttpConnection(_Connection):
    def __init__(self, stream: socket.socket, address: Address) -> None:
        super().__init__(stream)
        self._address = address

    def ask(self, event: bytes, trace: Optional[str], attempts: Attempts) -> Any:
        address, reader = self._address, HttpReader()
        self.send(request_of(address.path, address.authority, event, trace, address.token(), for_balancers(attempts.event)), attempts)
        while not reader.is_whole:
            chunk = self.receive(attempts)
            if not chunk:
                raise cut(None)
            reader.feed(chunk)
        self.rest(reader.keeps_connection)
        return reader.answer()


def _would_block(error: OSError) -> bool:
    """Of a socket that does not wait, also with TLS."""
    return isinstance(error, BlockingIOError) or type(error).__name__ in ("SSLWantReadError", "SSLWantWriteError")
