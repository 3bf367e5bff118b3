#!/usr/bin/env python3
"""{{name}}: blocks one command that nobody has. Put your own rule in its place."""

{{imports}}

def hook(envelope):
    """Gets the event; returns the answer, or None for no opinion. An exception is the hook's failure."""
    command = str((envelope.get("tool_input") or {}).get("command", ""))
    # Your rule goes here.
    if "frobnicate --everything" in command:
        return {"decision": "block", "reason": "{{name}}: nobody frobnicates everything here"}
    return None

