#!/usr/bin/env python3
"""Looks over the text an agent has just written and tells the model what to tidy up.

Finds trailing white space, `console.log` left in scripts, and TODOs that name nobody.
"""
import json
import os
import re
import sys

SCRIPTS = (".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx", ".vue")
MOST_FINDINGS = 20


def written_texts(tool_input):
    """Yields the new text of Write (content), Edit (new_string) and of each of several edits."""
    yield tool_input.get("content")
    yield tool_input.get("new_string")
    edits = tool_input.get("edits")
    for edit in edits if isinstance(edits, list) else []:
        if isinstance(edit, dict):
            yield edit.get("new_string")


def lint(text, path):
    extension = os.path.splitext(path)[1]
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.rstrip("\r")
        # Two blanks at the end of a line mean a line break in Markdown.
        if line != line.rstrip() and extension != ".md":
            yield "line %d: white space at the end" % number
        if extension in SCRIPTS and re.search(r"\bconsole\.log\s*\(", line):
            yield "line %d: console.log left in" % number
        if re.search(r"\bTODO\b(?!\s*\([^)]+\))", line):
            yield "line %d: a TODO without a name, write TODO(name)" % number


def read_envelope():
    try:
        envelope = json.load(sys.stdin.buffer)
    except (ValueError, RecursionError):
        envelope = None
    if not isinstance(envelope, dict):
        sys.exit("lint-after-edit: stdin holds no JSON object")
    return envelope


def main():
    tool_input = read_envelope().get("tool_input")
    if not isinstance(tool_input, dict):
        return
    path = tool_input.get("file_path")
    path = path if isinstance(path, str) else "(unnamed)"
    findings = [finding for text in written_texts(tool_input) if isinstance(text, str) for finding in lint(text, path)]
    if not findings:
        return
    shown = findings[:MOST_FINDINGS]
    if len(findings) > len(shown):
        shown.append("and %d more" % (len(findings) - len(shown)))
    print(json.dumps({
        "hookSpecificOutput": {
            "hookEventName": "after_tool_dispatch",
            "additionalContext": "Lint findings in the text written to %s:\n- %s" % (path, "\n- ".join(shown)),
        },
    }))


if __name__ == "__main__":
    main()
