#!/usr/bin/env python3
"""Cuts the middle out of very large tool outputs, and suppresses the output of noisy tools.

SHOP_MAX_OUTPUT_CHARS is the longest text that passes; SHOP_NOISY_TOOLS lists tool names.
"""
import json
import os
import sys

TEXT_FIELDS = ("stdout", "stderr", "output", "content", "text")


def trim(text, limit):
    """Keeps head and tail: what a command was doing, and how it ended."""
    cut = len(text) - limit
    half = limit // 2
    return "%s\n[... %d characters cut ...]\n%s" % (text[:half], cut, text[len(text) - (limit - half):])


def patch_for(output, limit):
    """The patch that trims the output, or None: a text is replaced, an object merged field by field."""
    if isinstance(output, str):
        return trim(output, limit) if len(output) > limit else None
    if not isinstance(output, dict):
        return None
    long = [field for field in TEXT_FIELDS if isinstance(output.get(field), str) and len(output[field]) > limit]
    return {field: trim(output[field], limit) for field in long} or None


def read_envelope():
    try:
        envelope = json.load(sys.stdin.buffer)
    except (ValueError, RecursionError):
        envelope = None
    if not isinstance(envelope, dict):
        sys.exit("tool-output-trimmer: stdin holds no JSON object")
    return envelope


def main():
    envelope = read_envelope()
    limit = os.environ.get("SHOP_MAX_OUTPUT_CHARS") or "4000"
    if not limit.isdigit() or int(limit) < 1:
        sys.exit("tool-output-trimmer: SHOP_MAX_OUTPUT_CHARS is not a positive number")
    noisy = [name.strip() for name in os.environ.get("SHOP_NOISY_TOOLS", "").split(",") if name.strip()]

    output = {}
    if envelope.get("tool_name") in noisy:
        output["suppressOutput"] = True
    patch = patch_for(envelope.get("tool_output"), int(limit))
    if patch is not None:
        output["systemMessage"] = "Trimmed the output of %s." % envelope.get("tool_name", "a tool")
        output["hookSpecificOutput"] = {"hookEventName": "after_tool_dispatch", "patch": {"tool_output": patch}}
    if output:
        print(json.dumps(output))


if __name__ == "__main__":
    main()
