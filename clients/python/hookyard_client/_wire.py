"""What stands on the wire, without a wire: lines and HTTP/1.1."""

from __future__ import annotations

from typing import Any, Mapping, Optional

from ._json import InexactNumber, parse
from ._problem import Problem, bad_answer, daemon_error, lost

LONGEST_ANSWER = 64 << 20
"""In bytes."""

LONGEST_REST = 30.0
"""How long a connection may rest, in seconds: the daemon ends it after `limits.idle_timeout`."""

DRAINING = "draining"
"""Stands for an id: the daemon wants a new connection for further events."""

CONNECTION = "connection"
"""Stands for an id: the error is about the connection, which ends."""

_LONGEST_HEAD = 64 << 10

# What is not encoded in headers. `urllib` would take longer to import than the rest.
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class LineSplitter:
    """Finds lines in what comes."""

    def __init__(self) -> None:
        self._partial: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that end in the chunk. Raises a `Problem` if one is too long."""
        lines = chunk.split(b"\n")
        rest = lines.pop()
        if lines and self._partial:
            lines[0] = b"".join([*self._partial, lines[0]])
            self._partial, self._size = [], 0
        if rest:
            self._partial.append(rest)
            self._size += len(rest)
            if self._size > LONGEST_ANSWER:
                raise bad_answer(f"it is longer than {LONGEST_ANSWER} bytes")
        return lines


def line_of(number: int, event: bytes, trace: Optional[str]) -> bytes:
    """The line of an event. The id first: the daemon can tell it even if the line is too long."""
    headers = b"" if trace is None else b',"headers":{"traceparent":"%b"}' % trace.encode()
    return b'{"id":%d%b,"event":%b}\n' % (number, headers, event)


def read_line(line: bytes) -> tuple[Any, Any, Optional[Problem]]:
    """The id of a line, its outcome, and what is wrong. Raises a `Problem` if nobody can tell whose it is."""
    inexact = None
    try:
        text = line.decode()
        try:
            answer = parse(text)
        except InexactNumber as number_error:
            import json

            # A fault of this event alone.
            inexact, answer = bad_answer(str(number_error)), json.loads(text)
    except (ValueError, RecursionError):
        raise bad_answer("it is not JSON") from None
    if not isinstance(answer, dict):
        raise bad_answer("it is not an object")
    if answer.get("draining") is True:
        return DRAINING, None, None
    number, error = answer.get("id"), answer.get("error")
    if number is None and error is not None:
        return CONNECTION, None, daemon_error(error)
    if type(number) is not int:
        raise bad_answer("its id is that of no event in flight")
    return number, answer.get("outcome"), inexact or (None if error is None else daemon_error(error))


def for_balancers(event: Mapping[str, Any]) -> str:
    """What a balancer must know of an event, and reads in no body, as headers: its run, and its id."""
    said = ""
    for name, key in (("x-hookyard-run", "run_id"), ("x-hookyard-event-id", "event_id")):
        value = event.get(key)
        # The daemon refuses any other id.
        if isinstance(value, str):
            encoded = "".join(chr(byte) if byte in _UNRESERVED else f"%{byte:02X}" for byte in value.encode(errors="replace"))
            said += f"{name}: {encoded}\r\n"
    return said


def request_of(path: str, authority: str, event: bytes, trace: Optional[str], token: Optional[str], said: str = "") -> bytes:
    """The request of an event. `said` are headers about it."""
    head = f"POST {path} HTTP/1.1\r\nhost: {authority}\r\ncontent-type: application/json\r\ncontent-length: {len(event)}\r\n{said}"
    if trace is not None:
        head += f"traceparent: {trace}\r\n"
    if token is not None:
        head += f"authorization: Bearer {token}\r\n"
    return f"{head}\r\n".encode() + event


class HttpReader:
    """Reads one response of HTTP/1.1."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._body = bytearray()
        self._status = 0
        self._headers: dict[bytes, bytes] = {}
        # How many bytes of the body, or of the chunk, are due.
        self._due: Optional[int] = None
        self.is_whole = False
        self.keeps_connection = False

    def feed(self, data: bytes) -> None:
        """Takes what has come. Raises a `Problem` if it is no answer."""
        self._data += data
        try:
            if not self._status and not self._read_head():
                return
            if b"chunked" in self._headers.get(b"transfer-encoding", b"").lower():
                self._read_chunks()
            else:
                self._take()
                self.is_whole = self._due == 0
        except (ValueError, IndexError):
            raise bad_answer("it is not HTTP") from None
        if len(self._body) + len(self._data) > LONGEST_ANSWER:
            raise bad_answer(f"it is longer than {LONGEST_ANSWER} bytes")

    def answer(self) -> Any:
        """The outcome. Raises the `Problem` that stands in its place."""
        try:
            answer = parse(self._body.decode())
        except InexactNumber as number_error:
            raise bad_answer(str(number_error)) from None
        except (ValueError, RecursionError):
            raise bad_answer(f"status {self._status} without JSON") from None
        if self._status == 200:
            return answer
        after = self._headers.get(b"retry-after", b"")
        error = answer.get("error") if isinstance(answer, dict) else None
        raise daemon_error(error, float(after) if after.isdigit() else 0)

    def _read_head(self) -> bool:
        end = self._data.find(b"\r\n\r\n")
        if end < 0:
            if len(self._data) > _LONGEST_HEAD:
                raise ValueError
            return False
        first, *fields = bytes(self._data[:end]).split(b"\r\n")
        version, status = first.split(b" ", 2)[:2]
        if version != b"HTTP/1.1":
            raise ValueError
        del self._data[: end + 4]
        if status.startswith(b"1"):
            return self._read_head()
        for field in fields:
            name, _, value = field.partition(b":")
            self._headers[name.strip().lower()] = value.strip()
        self._status = int(status)
        # After an error, the daemon may not have read all of the request, and closes the connection.
        self.keeps_connection = status == b"200" and b"close" not in self._headers.get(b"connection", b"").lower()
        if b"transfer-encoding" not in self._headers:
            self._due = int(self._headers[b"content-length"]) if b"content-length" in self._headers else None
            if self._due is None or self._due < 0:
                raise ValueError
        return True

    def _read_chunks(self) -> None:
        while True:
            if self._due is None:
                size, found, _ = self._data.partition(b"\r\n")
                if not found:
                    return
                self._due = int(size.split(b";")[0], 16)
                del self._data[: len(size) + 2]
                self.is_whole = self._due == 0
                if self.is_whole:
                    self.keeps_connection = self.keeps_connection and self._data == b"\r\n"
                    return
            self._take()
            if self._due or len(self._data) < 2:
                return
            del self._data[:2]
            self._due = None

    def _take(self) -> None:
        assert self._due is not None
        taken = self._data[: self._due]
        self._body += taken
        self._due -= len(taken)
        del self._data[: len(taken)]


def cut(farewell: Optional[Problem]) -> Problem:
    """The connection ended in the middle of an event, after the daemon may have said why."""
    return lost("the daemon closed it" if farewell is None else farewell.message)
