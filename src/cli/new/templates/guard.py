#!/usr/bin/env python3
"""{{name}}: blocks a made-up command. Replace it with your own rule."""

{{imports}}

def hook(envelope):
    """Gets the event. Returns the answer, or None for no opinion. An exception makes the hook fail."""
    command = str((envelope.get("tool_input") or {}).get("command", ""))
    # Your rule goes here.
    if "frobnicate --everything" in command:
        return {"decision": "block", "reason": "{{name}}: nobody frobnicates everything here"}
    return None

