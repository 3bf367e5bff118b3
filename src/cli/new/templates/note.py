#!/usr/bin/env python3
"""{{name}}: reports that it saw the event. Replace this with your own code."""

{{imports}}

def hook(envelope):
    """Gets the event. Returns the answer, or None for no opinion. An exception makes the hook fail."""
    # Your code goes here.
    return {"systemMessage": "{{name}} saw " + envelope["hook_event_name"]}

