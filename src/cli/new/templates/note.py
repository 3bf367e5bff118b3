#!/usr/bin/env python3
"""{{name}}: tells that it saw the event. Put what you want to do in its place."""

{{imports}}

def hook(envelope):
    """Gets the event; returns the answer, or None for no opinion. An exception is the hook's failure."""
    # What you want to do goes here.
    return {"systemMessage": "{{name}} saw " + envelope["hook_event_name"]}

