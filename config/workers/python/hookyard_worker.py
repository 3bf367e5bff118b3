"""Serves one hook function in all three modes: oneshot, prespawn and worker.

    from hookyard_worker import serve

    def guard(envelope):
        return {"decision": "block", "reason": "no"} if ... else None

    serve(guard)

The function gets the envelope and returns the output object, or None if it has no opinion. If it raises an exception,
the hook fails. In worker mode one process calls the function for many events, so global state is kept between them, and
whatever the function prints goes to standard error.
"""

import json
import os
import sys

LONGEST_ERROR = 500

# As json.dumps, without the search for cycles, which would end in an error anyhow.
_encode = json.JSONEncoder(check_circular=False).encode


def serve(hook):
    """Serves all events as a worker, and one event otherwise."""
    if os.environ.get("HOOKYARD_WORKER") == "1":
        _serve_all(hook)
    else:
        _serve_one(hook)


def _serve_one(hook):
    output = hook(json.loads(sys.stdin.buffer.read()))
    if output:
        print(_encode(output))


def _serve_all(hook):
    # Standard output carries the protocol, so print() writes to standard error.
    replies, sys.stdout = sys.stdout.buffer, sys.stderr

    def send(line):
        replies.write(line.encode() + b"\n")
        replies.flush()

    send('{"hookyard": 1}')
    for line in sys.stdin.buffer:
        message = json.loads(line.decode())
        if "ping" in message:
            send('{"pong": 1}')
        elif "envelope" in message:
            send(_answer(hook, message))
        # Ignores "cancel": events are served one at a time, so a cancelled one is answered by now.


def _answer(hook, message):
    try:
        return _encode({"id": message["id"], "output": hook(message["envelope"]) or {}})
    except Exception as error:
        return _encode({"id": message["id"], "error": f"{type(error).__name__}: {error}"[:LONGEST_ERROR]})
