#!/usr/bin/env python3
"""Keeps the open tasks in view when a context is compacted.

Tasks are `- [ ]` lines of TASKS.md and of the conversation, until a later `- [x]` line ticks them off.
Before and after the compaction they stand in one pinned system message.
"""
import json
import re
import sys

TASK = re.compile(r"^\s*- \[([ xX])\] (.+?)\s*$", re.MULTILINE)
PIN = "Open tasks, keep them through every compaction:"


def text_of(message):
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "\n".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def open_tasks(texts):
    is_open = {}
    for text in texts:
        for mark, task in TASK.findall(text):
            is_open[task] = mark == " "
    return [task for task in is_open if is_open[task]]


def pinned(messages, tasks):
    """The messages with one pin, behind the leading system messages, which no compaction takes away."""
    rest = [message for message in messages if not text_of(message).startswith(PIN)]
    at = 0
    while at < len(rest) and isinstance(rest[at], dict) and rest[at].get("role") == "system":
        at += 1
    pin = {"role": "system", "content": "\n".join([PIN] + ["- [ ] " + task for task in tasks])}
    return rest[:at] + [pin] + rest[at:]


def note(event, tasks, summary):
    if event == "before_context_compact":
        return "The summary must keep these open tasks: %s." % "; ".join(tasks)
    lost = [task for task in tasks if task.lower() not in summary.lower()]
    return "The summary left out these open tasks: %s." % "; ".join(lost) if lost else None


def main():
    try:
        envelope = json.load(sys.stdin.buffer)
    except (ValueError, RecursionError):
        envelope = None
    if not isinstance(envelope, dict):
        sys.exit("compaction-context: stdin holds no JSON object")
    context = envelope.get("context")
    messages = context.get("messages") if isinstance(context, dict) else None
    if not isinstance(messages, list):
        return
    try:
        with open("TASKS.md", encoding="utf-8", errors="replace") as file:
            planned = file.read()
    except OSError:
        planned = ""
    tasks = open_tasks([planned] + [text_of(message) for message in messages])
    if not tasks:
        return
    event = envelope.get("hook_event_name")
    output = {"hookEventName": event, "patch": {"context": {"messages": pinned(messages, tasks)}}}
    told = note(event, tasks, str(context.get("summaryText") or ""))
    if told:
        output["additionalContext"] = told
    print(json.dumps({"hookSpecificOutput": output}))


if __name__ == "__main__":
    main()
