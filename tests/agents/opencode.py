#!/usr/bin/env python3
"""Runs hooks for OpenCode through its plugin in `config/opencode`, and checks what the model sees and what happens.

    tests/agents/opencode.py [path/to/opencode] [target/debug/hookyard] [part of a case's name]

Ends with 1 if a case comes out otherwise, and with 0 where OpenCode is not installed.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from compare import Session, arguments, says

AGENT, HOOKYARD, WANTED = arguments("npm install opencode-ai", "opencode")
PLUGIN = Path(__file__).resolve().parents[2] / "config/opencode/hookyard.js"
PRE, POST = "PreToolUse", "PostToolUse"
RUNS = [[{"type": "tool_use", "id": "call_1", "name": "bash", "input": {"command": "echo ran >> ran; cat ran", "description": "run"}}]]
CHANGED = {"command": "echo changed >> ran; cat ran", "description": "run"}


def specific(event, **answer):
    return says(hookSpecificOutput={"hookEventName": event, **answer})


# Name, event, hook, what ran, what the model reads of the tool.
CASES = [
    ("no opinion", PRE, "cat > /dev/null", ["ran"], "ran"),
    ("exit code 2", PRE, "echo no >&2; exit 2", [], "no"),
    ("deny", PRE, specific(PRE, permissionDecision="deny", permissionDecisionReason="no"), [], "no"),
    ("ask", PRE, specific(PRE, permissionDecision="ask", permissionDecisionReason="sure?"), [], "a person has to be asked first: sure?"),
    ("continue false", PRE, says(**{"continue": False, "stopReason": "over"}), [], "over"),
    ("changed input", PRE, specific(PRE, updatedInput=CHANGED), ["changed"], "changed"),
    ("context before a tool", PRE, specific(PRE, additionalContext="mind"), ["ran"], "mind"),
    ("block after a tool", POST, says(decision="block", reason="wrong"), ["ran"], "wrong"),
    ("changed output", POST, specific(POST, updatedToolOutput="other"), ["ran"], "other"),
    ("context after a tool", POST, specific(POST, additionalContext="mind"), ["ran"], "mind"),
    ("no daemon", None, "true", [], ""),
]


def run(event, hook):
    """One session: what ran, and what the model read of the tool."""
    with Session(HOOKYARD) as session:
        if event:
            settings = {"hooks": {event: [{"hooks": [{"type": "command", "command": hook}]}]}}
            (session.project / ".claude").mkdir()
            (session.project / ".claude/settings.json").write_text(json.dumps(settings))
            session.relay("canonical")
        plugins = session.project / ".opencode/plugins"
        plugins.mkdir(parents=True)
        shutil.copy(PLUGIN, plugins)
        options = {"baseURL": f"http://127.0.0.1:{session.model(RUNS)}/v1", "apiKey": "none"}
        provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"mock": {"name": "mock"}}}
        config = {"model": "mock/mock", "permission": {"bash": "allow"}, "provider": {"mock": provider}}
        (session.project / "opencode.json").write_text(json.dumps(config))
        subprocess.run(["git", "init", "-q", str(session.project)], check=True)
        environment = {
            "HOOKYARD_LISTEN_SOCKET": str(session.place / "socket"),
            "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1", "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        }
        session.run([AGENT, "run", "go"], environment)
        read = [session.plain(str(message["content"])) for request in session.requests()
                for message in request["messages"] if message["role"] == "tool"]
        return session.ran(), read


wrong = 0
for name, event, hook, expected, text in CASES:
    if WANTED not in name:
        continue
    ran, read = run(event, hook)
    is_right = ran == expected and len(read) == 1 and text in read[0]
    wrong += not is_right
    print("right " if is_right else "WRONG!", name, "" if is_right else f"{ran} {read}", flush=True)
sys.exit(wrong > 0)
