"""A host in Python for the bench `peers`: it says `ready`, then does what each line of standard input asks, `WHAT NUMBER
AT_ONCE`, and answers with the nanoseconds that it took.

    python3 host.py PROJECT
"""

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone

PROJECT = sys.argv[1]


def plain(_):
    """The least that runs a command hook and takes its answer."""
    event = {
        "session_id": "session-1", "transcript_path": "", "cwd": PROJECT, "hook_event_name": "BeforeTool",
        "timestamp": datetime.now(timezone.utc).isoformat(), "tool_name": "Bash", "tool_input": {"command": "npm run lint"},
    }
    done = subprocess.run(["/bin/sh", "-c", "true"], input=json.dumps(event).encode(), capture_output=True, cwd=PROJECT, check=True)
    return json.loads(done.stdout) if done.stdout else None


WAYS = {"plain": plain}

print("ready", flush=True)
for line in sys.stdin:
    what, number, at_once = line.split()
    with ThreadPoolExecutor(int(at_once)) as pool:
        begun = time.perf_counter_ns()
        for _ in pool.map(WAYS[what], range(int(number))):
            pass
        print(time.perf_counter_ns() - begun, flush=True)
