"""Blocks commands that remove everything."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
from hookyard_worker import serve


def guard(envelope):
    command = (envelope.get("tool_input") or {}).get("command", "")
    if "rm -rf /" in command:
        return {"decision": "block", "reason": "this would remove everything"}
    return None


serve(guard)
