#!/usr/bin/env python3
"""Brings what is new in the sink's files into PostgreSQL, each line once; run it every minute.

    PGDATABASE=audit load.py --store /var/lib/hookyard-sink

Where the database is, psql's own variables say (PGHOST, PGUSER, PGPASSFILE and so on). A transaction has lines of one file and how
far that file is loaded then, so that a run that ends in the middle, or two at once, neither lose lines nor bring them twice.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

from sink import entries_of, lines_of

SCHEMA = Path(__file__).resolve().parent / "audit.sql"
PSQL = ("psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1")
# Lines of one transaction, in bytes.
MOST = 64 << 20
KINDS = ("state", "denied", "unreadable")


def loaded() -> dict[str, int]:
    """Makes the tables where they are missing, and says how far each file is loaded."""
    schema = (
        "set client_min_messages = warning;\nbegin;\n"
        # Two that make the same table at once could both fail.
        f"do $$ begin perform pg_advisory_xact_lock(hashtext('hookyard')); end $$;\n{SCHEMA.read_text()}\ncommit;\n"
        "select file, ended from hookyard.loaded;\n"
    )
    done = subprocess.run(PSQL, input=schema, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"load.py: psql: {done.stderr.strip()}")
    return {file: int(ended) for file, ended in (row.rsplit("|", 1) for row in done.stdout.splitlines() if row)}


def parts(batches: Path, begin: int) -> Iterator[tuple[int, int, bytes]]:
    """What a file of batches says that is not loaded: how far it is, how far it is then, and rows for COPY."""
    rows: list[bytes] = []
    size, end = 0, begin
    with batches.with_suffix(".ndjson").open("rb") as lines:
        lines.seek(begin)
        for entry in entries_of(batches)[0]:
            if entry["end"] <= end:
                continue
            data = lines.read(entry["end"] - end)
            rows += [row(batches.parent.name, line, entry["at"]) for line in lines_of(data)]
            size, end = size + len(data), entry["end"]
            if size >= MOST:
                yield begin, end, b"".join(rows)
                rows, size, begin = [], 0, end
    if rows:
        yield begin, end, b"".join(rows)


def row(node: str, line: bytes, received: float) -> bytes:
    received_at = datetime.fromtimestamp(received, timezone.utc)
    at, kind = received_at, "unreadable"
    try:
        found = json.loads(line)
        kind = next((kind for kind in KINDS if kind in found), "outcome")
        at = datetime.fromisoformat(found["at"]).astimezone(timezone.utc)
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError):
        # Whatever an edge writes, the lines of the others come in.
        pass
    text = line[:-1].replace(b"\\", b"\\\\").replace(b"\r", b"\\r").replace(b"\t", b"\\t")
    return f"{node}\t{at.isoformat()}\t{received_at.isoformat()}\t{kind}\t".encode() + text + b"\n"


def script(store: Path, known: dict[str, int]) -> Iterator[bytes]:
    yield b"create temporary table incoming (node text, at timestamptz, received timestamptz, kind text, line text);\n"
    for batches in sorted(store.glob("*/*.batches")):
        file = f"{batches.parent.name}/{batches.stem}"
        for begin, end, rows in parts(batches, known.get(file, 0)):
            yield f"begin; truncate incoming; insert into hookyard.loaded values ('{file}', 0) on conflict do nothing;\n".encode()
            yield b"copy incoming from stdin;\n" + rows + b"\\.\n"
            # Of two that load the same lines, one finds that they are loaded.
            yield (
                f"with moved as (update hookyard.loaded set ended = {end} where file = '{file}' and ended = {begin} returning 1)\n"
                "insert into hookyard.lines (node, at, received, kind, line)\n"
                "select node, at, received, kind, hookyard.read(line) from incoming where exists (select from moved);\ncommit;\n"
            ).encode()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", type=Path, required=True, help="the directory of the sink")
    options = parser.parse_args()
    try:
        known = loaded()
        with subprocess.Popen(PSQL, stdin=subprocess.PIPE) as psql:
            for piece in script(options.store, known):
                psql.stdin.write(piece)
            psql.stdin.close()
            return psql.wait()
    except FileNotFoundError as error:
        print(f"load.py: {error.filename} is missing: `apt-get install postgresql-client`", file=sys.stderr)
    except BrokenPipeError:
        print("load.py: psql has ended early; what it says is above", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
