"""Serves one hook function in all three modes: oneshot, prespawn and worker.

    from hookyard_worker import serve

    def guard(envelope):
        return {"decision": "block", "reason": "no"} if ... else None

    serve(guard)

The function gets the envelope and returns the output object, or None for no opinion. An exception is the hook's
failure. In worker mode the function is called again and again in one process, so it must not keep state between
events unless it means to; what it prints goes to the log.
"""

import json
import os
import sys

LONGEST_ERROR = 500


def serve(hook):
    """Answers with what `hook` returns: every event as a worker, one event otherwise."""
    if os.environ.get("HOOKYARD_WORKER") == "1":
        _serve_all(hook)
    else:
        _serve_one(hook)


def _serve_one(hook):
    output = hook(json.loads(sys.stdin.buffer.read()))
    if output:
        print(json.dumps(output))


def _serve_all(hook):
    # Standard output belongs to the protocol; a stray print of the hook goes to the log instead.
    replies, sys.stdout = sys.stdout.buffer, sys.stderr

    def send(message):
        replies.write(json.dumps(message).encode() + b"\n")
        replies.flush()

    send({"hookyard": 1})
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "ping" in message:
            send({"pong": 1})
        elif "envelope" in message:
            send({"id": message["id"], **_answer(hook, message["envelope"])})
        # A cancel is of an event that has been answered by now: one at a time is served.


def _answer(hook, envelope):
    try:
        return {"output": hook(envelope) or {}}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:LONGEST_ERROR]}
