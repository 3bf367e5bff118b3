"""The guard of the nodes under test: halts where the event says so, and writes down each event that it is asked about.

A worker that speaks hookyard's protocol itself, because the id of the event and the number of its delivery are in the
request and not in the envelope.
"""

import json
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

AT_ONCE = 32
# How long a guard thinks: long enough that a fault meets events under way.
SECONDS = 0.015


def main() -> None:
    log_path, node = sys.argv[1:3]
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else SECONDS
    ends = os.open(sys.argv[4], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600) if len(sys.argv) > 4 else None
    log = os.open(log_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    replies = os.dup(1)
    lock = threading.Lock()

    def send(message: dict) -> None:
        line = json.dumps(message).encode() + b"\n"
        with lock:
            os.write(replies, line)

    def serve(request: dict) -> None:
        # One write, so that the lines of several processes do not mix.
        line = f"{request.get('event_id')} {request.get('delivery', 1)} {node}\n"
        os.write(log, line.encode())
        begun = time.monotonic()
        time.sleep(seconds)
        if ends is not None:
            os.write(ends, f"{request.get('event_id')} {node} {begun} {time.monotonic()}\n".encode())
        halt = (request["envelope"].get("tool_input") or {}).get("halt")
        output = {"continue": False, "stopReason": "the budget is spent"} if halt else {}
        send({"id": request["id"], "output": output})

    send({"hookyard": 1, "multiplex": True, "max_events": AT_ONCE})
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for line in sys.stdin:
            message = json.loads(line)
            if "envelope" in message:
                pool.submit(serve, message)
            elif "ping" in message:
                send({"pong": 1})


if __name__ == "__main__":
    main()
