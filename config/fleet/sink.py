#!/usr/bin/env python3
"""Takes the audit lines that edges ship, and answers once they are on disk.

    sink.py --store /var/lib/hookyard-sink --tokens /etc/hookyard/edges.tokens --socket /run/hookyard-sink/socket

A web server stands before it (nginx.conf beside this), and nothing else reaches its socket. Each batch of an edge is appended to
STORE/EDGE/DAY.ndjson as it came, and then written down in DAY.batches, which is what makes it count: what stands behind the last
batch there is removed at the next start, and the edge sends it again. Lines that come a second time are only counted.
Needs Python 3.11 and nothing else.
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import json
import os
import re
import shutil
import signal
import socketserver
import sys
import threading
import time
import zlib
from collections import deque
from http.server import BaseHTTPRequestHandler
from pathlib import Path

NODE = re.compile(r"(?!\.)[A-Za-z0-9._-]{1,63}")
BATCH = re.compile(r"[A-Za-z0-9-]{1,128}")
# hookyard puts at most 1 MiB of lines into a request, or one line that is larger.
MOST_BODY = 8 << 20
MOST_LINES = 16 << 20
# How many requests are worked on, which bounds the memory, and how long others wait. An edge tries again what is refused.
AT_ONCE = 8
PATIENCE = 5
RETRY_AFTER = 2
# An edge sends one batch after the other. Without an answer it sends the same lines again, with those that were added since,
# so what comes again is in the last batch. Where it could not write down how far it was, batches from before that come again.
REMEMBERED = 256
REQUEST_SECONDS = 25
DAY_SECONDS = 86_400


class Refused(Exception):
    """An answer other than that the lines are there."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Edge:
    """The lines of an edge: files of days, each with one that says which of it counts."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.lock = threading.Lock()
        self.batches: deque[str] = deque(maxlen=REMEMBERED)
        # Digests of the lines of the last batch.
        self.last: set[bytes] = set()
        # The day that is written to, and how far its two files count.
        self.day = ""
        self.lines_end = self.batches_end = 0
        self.known = False

    def _read(self) -> None:
        """Reads what counts, and cuts off the rest."""
        self.directory.mkdir(mode=0o700, exist_ok=True)
        self.batches.clear()
        self.last, self.day, self.lines_end, self.batches_end = set(), "", 0, 0
        found: list[str] = []
        for day in sorted((path.stem for path in self.directory.glob("*.batches")), reverse=True):
            entries, end = entries_of(self.directory / f"{day}.batches")
            if not self.day:
                self.day, self.batches_end = day, end
                self.lines_end = entries[-1]["end"] if entries else 0
                cut(self.directory / f"{day}.batches", end)
                cut(self.directory / f"{day}.ndjson", self.lines_end)
                self.last = self._last_lines(entries)
            found = [entry["batch"] for entry in entries] + found
            if len(found) >= REMEMBERED:
                break
        self.batches.extend(found)
        self.known = True

    def _last_lines(self, entries: list[dict]) -> set[bytes]:
        found: set[bytes] = set()
        for number in reversed(range(len(entries))):
            begin = entries[number - 1]["end"] if number else 0
            with open(self.directory / f"{self.day}.ndjson", "rb") as file:
                file.seek(begin)
                found.update(map(digest, lines_of(file.read(entries[number]["end"] - begin))))
            # The lines of a batch that had come before are in the one before.
            if not entries[number]["again"]:
                break
        return found

    def add(self, batch: str, lines: list[bytes], wire: int, now: float) -> int:
        """Keeps the lines that are new, and returns how many came again. Whatever it raises, nothing of the batch counts."""
        with self.lock:
            if not self.known:
                self._read()
            # With a clock that goes back, the day of the last batch goes on.
            day = max(time.strftime("%Y-%m-%d", time.gmtime(now)), self.day)
            if day != self.day:
                self.day, self.lines_end, self.batches_end = day, 0, 0
            digests = [digest(line) for line in lines]
            is_known = batch in self.batches
            new = [line for line, key in zip(lines, digests) if not is_known and key not in self.last]
            end = self.lines_end + sum(map(len, new))
            again = len(lines) - len(new)
            entry = {"batch": batch, "at": round(now, 3), "end": end, "lines": len(new), "again": again, "wire": wire}
            is_first = self.batches_end == 0
            self._append("ndjson", self.lines_end, b"".join(new))
            self._append("batches", self.batches_end, json.dumps(entry, separators=(",", ":")).encode() + b"\n")
            if is_first:
                sync_directory(self.directory)
                sync_directory(self.directory.parent)
            self.lines_end = end
            if not is_known:
                self.batches.append(batch)
                self.last = set(digests)
            return again

    def _append(self, kind: str, end: int, data: bytes) -> None:
        path = self.directory / f"{self.day}.{kind}"
        try:
            with open(path, "ab", opener=private) as file:
                # What an earlier failure has left does not count.
                file.truncate(end)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            # Which of it is there is read again before the next batch.
            self.known = False
            cut(path, end)
            raise
        if kind == "batches":
            self.batches_end = end + len(data)


def digest(line: bytes) -> bytes:
    return hashlib.blake2b(line, digest_size=16).digest()


def entries_of(path: Path) -> tuple[list[dict], int]:
    """What a file of batches says, and where that ends: behind it is at most one half of a line."""
    text = path.read_bytes()
    end = text.rfind(b"\n") + 1
    return [json.loads(line) for line in text[:end].splitlines()], end


def cut(path: Path, size: int) -> None:
    if path.exists() and path.stat().st_size > size:
        os.truncate(path, size)


def private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def sync_directory(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


class Tokens:
    """A file with a line `EDGE DIGEST` for each edge, the digest being the SHA-256 of its token; read again when it changes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.seen: tuple[int, int, int] | None = None
        self.digests: dict[str, str] = {}
        self.lock = threading.Lock()

    def allow(self, node: str, authorization: str) -> bool:
        with self.lock:
            found = self.path.stat()
            seen = (found.st_ino, found.st_mtime_ns, found.st_size)
            if seen != self.seen:
                rows = (line.split("#")[0].split() for line in self.path.read_text().splitlines())
                self.digests = {row[0]: row[1] for row in rows if len(row) == 2}
                self.seen = seen
            wanted = self.digests.get(node, "")
        token = authorization.removeprefix("Bearer ").strip()
        given = hashlib.sha256(token.encode()).hexdigest()
        return bool(token) and hmac.compare_digest(given, wanted)


class Sink:
    """Where lines go, and who may send them."""

    def __init__(self, store: Path, tokens: Path, least_free: int, keep_days: int) -> None:
        store.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.store, self.least_free, self.keep_days = store, least_free, keep_days
        self.tokens = Tokens(tokens)
        self.edges: dict[str, Edge] = {}
        self.lock = threading.Lock()
        self.work = threading.Semaphore(AT_ONCE)

    def take(self, headers: dict[str, str], body: bytes) -> int:
        """Returns how many of the lines came again."""
        node, batch = headers.get("x-hookyard-node", ""), headers.get("x-hookyard-batch", "")
        if not NODE.fullmatch(node) or not BATCH.fullmatch(batch):
            raise Refused(400, "x-hookyard-node or x-hookyard-batch is missing or no name")
        if not self.tokens.allow(node, headers.get("authorization", "")):
            raise Refused(401, f"the token is not that of {node}")
        if shutil.disk_usage(self.store).free < self.least_free:
            raise Refused(503, "the disk is nearly full")
        lines = whole_lines(node, unpacked(body, headers.get("content-encoding", "")))
        with self.lock:
            edge = self.edges.setdefault(node, Edge(self.store / node))
        return edge.add(batch, lines, len(body), time.time())

    def forget(self) -> None:
        """Removes days that are over for longer than they are kept."""
        oldest = time.strftime("%Y-%m-%d", time.gmtime(time.time() - self.keep_days * DAY_SECONDS))
        for path in self.store.glob("*/????-??-??.*"):
            if path.suffix in (".ndjson", ".batches") and path.stem < oldest:
                path.unlink(missing_ok=True)


def unpacked(body: bytes, encoding: str) -> bytes:
    if encoding != "gzip":
        return body
    reader = zlib.decompressobj(wbits=31)
    try:
        data = reader.decompress(body, MOST_LINES)
    except zlib.error as error:
        raise Refused(400, f"the body is no gzip: {error}") from error
    if reader.unconsumed_tail:
        raise Refused(413, "unpacked, the lines are too large")
    if not reader.eof or reader.unused_data:
        raise Refused(400, "the body is not one whole gzip")
    return data


def whole_lines(node: str, data: bytes) -> list[bytes]:
    """The lines, those that are no JSON of this edge inside of some that are: to refuse them would hold up the edge for good."""
    if not data.endswith(b"\n"):
        raise Refused(400, "the last line has no end")
    kept = []
    for line in lines_of(data):
        try:
            # As bytes, it could be JSON in another encoding.
            found = json.loads(line.decode())
            is_fine = isinstance(found, dict) and found.get("node") == node
        except (ValueError, RecursionError):
            is_fine = False
        if not is_fine:
            line = json.dumps({"node": node, "unreadable": line[:-1].decode(errors="replace")}).encode() + b"\n"
        kept.append(line)
    return kept


def lines_of(data: bytes) -> list[bytes]:
    """Whole lines with their ends. A line of JSON may have a carriage return in it."""
    return [line + b"\n" for line in data.split(b"\n")[:-1]]


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = False
    request_queue_size = 128

    def __init__(self, path: Path, sink: Sink) -> None:
        self.sink = sink
        path.unlink(missing_ok=True)
        super().__init__(str(path), Handler)
        # Who may reach it, the directory says.
        os.chmod(path, 0o666)


class Handler(BaseHTTPRequestHandler):
    server: Server
    timeout = REQUEST_SECONDS
    server_version = "hookyard-sink"

    def do_POST(self) -> None:
        if not self.server.sink.work.acquire(timeout=PATIENCE):
            return self.refuse(Refused(503, "too many requests at once"))
        try:
            again = self.server.sink.take({name.lower(): value for name, value in self.headers.items()}, self.body())
        except Refused as refused:
            self.refuse(refused)
        except OSError as error:
            self.refuse(Refused(503, f"the lines cannot be kept: {error}"))
        else:
            self.send_response(204)
            self.send_header("x-hookyard-again", str(again))
            self.end_headers()
        finally:
            self.server.sink.work.release()

    def body(self) -> bytes:
        try:
            length = int(self.headers.get("content-length", ""))
        except ValueError:
            raise Refused(411, "the request does not say how long it is") from None
        if not 0 <= length <= MOST_BODY:
            raise Refused(413, "the request is too large")
        body = self.rfile.read(length)
        if len(body) < length:
            raise Refused(400, "the request ended before its body did")
        return body

    def refuse(self, refused: Refused) -> None:
        print(f"{refused.status} for {self.headers.get('x-hookyard-node', '?')[:63]!r}: {refused}", file=sys.stderr, flush=True)
        self.send_response(refused.status)
        if refused.status == 503:
            self.send_header("retry-after", str(RETRY_AFTER))
        self.end_headers()
        # Also where nobody reads it: the edge has the status in its own.
        self.wfile.write(f"{refused}\n".encode())

    def log_request(self, *_: object) -> None:
        """The web server before this has a log."""

    def address_string(self) -> str:
        return "socket"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", type=Path, required=True, help="the directory of lines")
    parser.add_argument("--tokens", type=Path, required=True, help="a line `EDGE SHA256-OF-ITS-TOKEN` for each edge")
    parser.add_argument("--socket", type=Path, required=True, help="where the web server reaches this, in a directory for it alone")
    parser.add_argument("--keep-days", type=int, default=400, help="how long lines are kept")
    parser.add_argument("--least-free", type=int, default=1 << 30, help="below so many free bytes, lines are refused")
    options = parser.parse_args()
    os.umask(0o077)
    sink = Sink(options.store, options.tokens, options.least_free, options.keep_days)
    options.tokens.read_text()
    with Server(options.socket, sink) as server:
        # A request that has begun has its answer before this ends.
        signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
        threading.Thread(target=forget_daily, args=(sink,), daemon=True).start()
        server.serve_forever(poll_interval=0.1)
    options.socket.unlink(missing_ok=True)


def forget_daily(sink: Sink) -> None:
    while True:
        sink.forget()
        time.sleep(3600)


if __name__ == "__main__":
    main()
