#!/usr/bin/env python3
"""Appends one JSON line to the audit file for every run that ends.

SHOP_AUDIT_FILE names the file; a relative path is taken below the system's temp directory.
Only the fields listed here are written, so nothing of a conversation, and no secret, gets in.
"""
import json
import os
import sys
import tempfile
from datetime import datetime, timezone

FIELDS = (
    "hook_event_name", "workspace_id", "session_id", "run_id",
    "agent_name", "effective_agent_name", "trigger_type", "run_status",
)
LONGEST_VALUE = 200


def read_envelope():
    try:
        envelope = json.load(sys.stdin.buffer)
    except (ValueError, RecursionError):
        envelope = None
    if not isinstance(envelope, dict):
        sys.exit("audit-logger: stdin holds no JSON object")
    return envelope


def append(path, line):
    # No link is followed: others can write to a temp directory, too. One write keeps lines whole.
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    file = os.open(path, flags, 0o600)
    try:
        os.write(file, line.encode("utf-8"))
    finally:
        os.close(file)


def main():
    envelope = read_envelope()
    record = {"at": datetime.now(timezone.utc).isoformat(timespec="milliseconds")}
    for field in FIELDS:
        if isinstance(envelope.get(field), str):
            record[field] = envelope[field][:LONGEST_VALUE]
    path = os.path.join(tempfile.gettempdir(), os.environ.get("SHOP_AUDIT_FILE") or "hookyard-shop-audit.jsonl")
    try:
        append(path, json.dumps(record) + "\n")
    except OSError as error:
        sys.exit("audit-logger: cannot append to %s: %s" % (path, error.strerror))


if __name__ == "__main__":
    main()
