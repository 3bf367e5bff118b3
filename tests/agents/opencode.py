#!/usr/bin/env python3
"""Runs hooks for OpenCode through its plugin in `config/opencode`, and checks what the model sees and what happens.

    tests/agents/opencode.py [path/to/opencode] [target/debug/hookyard] [part of a case's name]

Ends with 1 if a case comes out otherwise, and with 0 where OpenCode is not installed.
"""

import json
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from compare import Session, arguments, says

AGENT, HOOKYARD, WANTED = arguments("npm install opencode-ai", "opencode")
PLUGIN = Path(__file__).resolve().parents[2] / "config/opencode/hookyard.js"
PRE, POST = "PreToolUse", "PostToolUse"
# Commands that a call needs: without their answer it is denied.
GUARDS = json.dumps({command: {"on_error": "deny", "on_timeout": "deny"} for command in ("exit 1", "sleep 60")})
# What the first session installs beside its plugins, from a registry; the others would need a minute for it, each.
PACKAGES = tempfile.TemporaryDirectory(prefix="agents-")
PACKAGE_FILES = ["node_modules", "package.json", "package-lock.json"]
# More than the daemon takes in an event.
TOO_BIG = 20 << 20


def call(number, command, name="bash", **more):
    given = {"command": command, "description": "run"} if name == "bash" else {}
    return {"type": "tool_use", "id": f"call_{number}", "name": name, "input": {**given, **more}}


def writes(content):
    return [[call(1, "", name="write", filePath="ran", content=content)]]


def hook(*commands, **more):
    return [{"hooks": [{"type": "command", "command": command, **more} for command in commands]}]


def entry(matcher, command):
    return [{"matcher": matcher, **hook(command)[0]}]


def specific(event, **answer):
    return says(hookSpecificOutput={"hookEventName": event, **answer})


def reads(field):
    """A command that denies a call with what this expression makes of the event."""
    return f"python3 -c 'import json, sys; e = json.load(sys.stdin); sys.exit(str({field}))' || exit 2"


def http(body, status="200 OK"):
    """An answer of a server."""
    return f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode()


RUNS = [[call(1, "echo ran >> ran; cat ran")]]
TWO = [[call(1, "echo one >> ran")], [call(2, "echo two >> ran; cat ran")]]
PARALLEL = [[call(1, "echo one >> ran"), call(2, "echo two >> ran")]]
FAILS = [[call(1, "", name="read", filePath="missing")]]
TEXT = [{"type": "text", "text": "working"}]
AGENTS = [[call(1, "", name="task", description="look", prompt="look", subagent_type="general")], *RUNS, TEXT]
UNICODE = "grüße 🦉 ​﷽ ‮ 日本"
CHANGED = {"command": "echo changed >> ran; cat ran", "description": "run"}
DOWN = "hookyard has no answer"
NO = "echo no >&2; exit 2"
KILL = "kill -9 $(cat daemon.pid); sleep 60"
DENY = {"permissionDecision": "deny", "permissionDecisionReason": "no"}

# Name, hooks, turns of the model, what ran, what the model reads of each call.
CASES = [
    ("no opinion", {PRE: hook("cat > /dev/null")}, RUNS, ["ran"], ["ran"]),
    ("exit code 2", {PRE: hook(NO)}, RUNS, [], ["no"]),
    ("exit code 2 without a text", {PRE: hook("exit 2")}, RUNS, [],
     ["blocked by hook"]),
    ("exit code 1", {PRE: hook("echo broken >&2; exit 1")}, RUNS, ["ran"], ["ran"]),
    ("exit code 1 of a guard", {PRE: hook("exit 1")}, RUNS, [], [""]),
    ("broken JSON", {PRE: hook("echo '{hello'")}, RUNS, ["ran"], ["ran"]),
    ("deny", {PRE: hook(specific(PRE, **DENY))}, RUNS, [], ["no"]),
    ("deny without a reason", {PRE: hook(specific(PRE, permissionDecision="deny"))}, RUNS, [], ["block"]),
    ("deny with context", {PRE: hook(specific(PRE, **DENY, additionalContext="mind"))}, RUNS, [], ["mind"]),
    ("two denials", {PRE: hook("sleep 0.5; echo first >&2; exit 2", "echo second >&2; exit 2")}, RUNS, [], ["first"]),
    ("denied and allowed", {PRE: hook(NO, specific(PRE, permissionDecision="allow"))}, RUNS, [], ["no"]),
    ("allow", {PRE: hook(specific(PRE, permissionDecision="allow"))}, RUNS, ["ran"], ["ran"]),
    ("ask", {PRE: hook(specific(PRE, permissionDecision="ask", permissionDecisionReason="sure?"))}, RUNS, [],
     ["a person has to be asked first: sure?"]),
    ("continue false", {PRE: hook(says(**{"continue": False, "stopReason": "over"}))}, RUNS, [], ["over"]),
    ("nothing runs after a halt", {PRE: hook(says(**{"continue": False, "stopReason": "over"}))}, TWO, [], ["over", "over"]),
    ("changed input", {PRE: hook(specific(PRE, updatedInput=CHANGED))}, RUNS, ["changed"], ["changed"]),
    ("changed input in Unicode", {PRE: hook(specific(PRE, updatedInput={**CHANGED, "command": f"echo {UNICODE}"}))}, RUNS, [],
     [UNICODE]),
    ("changed input without what the tool needs", {PRE: hook(specific(PRE, updatedInput={"description": "run"}))}, RUNS, [], [""]),
    ("input after a change", {PRE: hook(specific(PRE, updatedInput=CHANGED)),
                              POST: hook(reads('e["tool_input"]["command"]'))}, RUNS, ["changed"], [CHANGED["command"]]),
    ("context before a tool", {PRE: hook(specific(PRE, additionalContext="mind"))}, RUNS, ["ran"], ["mind"]),
    ("context before and after", {PRE: hook(specific(PRE, additionalContext="mind")),
                                  POST: hook(specific(POST, additionalContext="this"))}, RUNS, ["ran"], ["ran mind this"]),
    ("a slow hook", {PRE: hook("sleep 5; " + NO)}, RUNS, [], ["no"]),
    ("timeout", {PRE: hook("sleep 60; " + NO, timeout=1)}, RUNS, ["ran"], ["ran"]),
    ("timeout of a guard", {PRE: hook("sleep 60", timeout=1)}, RUNS, [], [""]),
    ("matcher", {PRE: entry("bash", NO)}, RUNS, [], ["no"]),
    ("matcher with Claude Code's name", {PRE: entry("Bash", NO)}, RUNS, ["ran"], ["ran"]),
    ("matcher of another tool", {PRE: entry("write", NO)}, RUNS, ["ran"], ["ran"]),
    ("the second of two calls", {PRE: hook("grep -q two && { " + NO + "; }; exit 0")}, TWO, ["one"], ["", "no"]),
    ("one of two calls at once", {PRE: hook("grep -q two && { " + NO + "; }; exit 0")}, PARALLEL, ["one"], ["", "no"]),
    ("a call of a subagent", {PRE: entry("bash", NO)}, AGENTS, [], [""]),
    ("a tool that writes", {PRE: hook(reads('e["tool_input"]["content"]'))}, writes("hello"), [], ["hello"]),
    ("Unicode", {PRE: hook(reads('e["tool_input"]["content"]'))}, writes(UNICODE), [], [UNICODE]),
    ("a big input", {PRE: hook(reads('len(e["tool_input"]["content"])'))}, writes("x" * 500_000), [], ["500000"]),
    ("an input that is too big", {PRE: hook("cat > /dev/null")}, writes("x" * TOO_BIG), [], [DOWN]),
    ("block after a tool", {POST: hook(says(decision="block", reason="wrong"))}, RUNS, ["ran"], ["wrong"]),
    ("exit code 2 after a tool", {POST: hook(NO)}, RUNS, ["ran"], ["no"]),
    ("continue false after a tool", {POST: hook(says(**{"continue": False, "stopReason": "over"}))}, TWO, ["one"], ["over", "over"]),
    ("changed output", {POST: hook(specific(POST, updatedToolOutput="other"))}, RUNS, ["ran"], ["other"]),
    ("changed output that is an object", {POST: hook(specific(POST, updatedToolOutput={"a": 1}))}, RUNS, ["ran"], ['{"a":1}']),
    ("output in Unicode", {POST: hook(specific(POST, updatedToolOutput=UNICODE))}, RUNS, ["ran"], [UNICODE]),
    ("context after a tool", {POST: hook(specific(POST, additionalContext="mind"))}, RUNS, ["ran"], ["mind"]),
    ("a tool that fails", {POST: hook("echo hook >> ran")}, FAILS, [], [""]),
    ("the daemon dies before the tool", {PRE: hook(KILL)}, RUNS, [], [DOWN]),
    ("the daemon dies after the tool", {POST: hook(KILL)}, RUNS, ["ran"], [DOWN]),
    ("the daemon dies at the second call", {PRE: hook("grep -q two && { " + KILL + "; }; exit 0")}, TWO, ["one"], ["", DOWN]),
]

# Name, what is in the place of the daemon, what the model reads of the call. The tool does not run.
OTHERS = [
    ("no daemon", None, DOWN),
    ("a server that hangs up", b"", DOWN),
    ("a server that fails", http('{"error": {"message": "no store"}}', "500 Error"), "no store"),
    ("a server that answers no JSON", http("hello"), DOWN),
    ("a server that breaks off", http('{"verdict": "proceed"}')[:-5], DOWN),
    ("an answer without a verdict", http("{}"), "blocked by a hook"),
    ("an unknown verdict", http('{"verdict": "dance"}'), "blocked by a hook"),
]


def answer_with(path, answer):
    """Has a server answer everything like this."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()

    def serve():
        while True:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1 << 20)
                connection.sendall(answer)

    threading.Thread(target=serve, daemon=True).start()


def give_packages(directory):
    """Gives a directory of plugins what an earlier session has installed."""
    directory.mkdir(parents=True, exist_ok=True)
    for file in Path(PACKAGES.name).iterdir():
        (directory / file.name).symlink_to(file)


def keep_packages(directory):
    """Keeps what a session has installed beside its plugins."""
    for name in PACKAGE_FILES:
        kept = Path(PACKAGES.name) / name
        if not kept.exists() and (directory / name).exists():
            (directory / name).rename(kept)


def run(hooks, turns, *, other=None):
    """One session: what ran, and what the model read of the tools."""
    with Session(HOOKYARD) as session:
        if hooks:
            (session.project / ".claude").mkdir()
            (session.project / ".claude/settings.json").write_text(json.dumps({"hooks": hooks}))
            session.relay("canonical", f"handlers={GUARDS}")
            (session.project / "daemon.pid").write_text(str(session.processes[-1].pid))
        elif other is not None:
            answer_with(session.place / "socket", other)
        plugins = session.project / ".opencode/plugins"
        plugins.mkdir(parents=True)
        shutil.copy(PLUGIN, plugins)
        give_packages(plugins.parent)
        give_packages(session.home / ".config/opencode")
        options = {"baseURL": f"http://127.0.0.1:{session.model(turns)}/v1", "apiKey": "none"}
        provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"mock": {"name": "mock"}}}
        config = {"model": "mock/mock", "permission": {"bash": "allow", "edit": "allow"}, "provider": {"mock": provider}}
        (session.project / "opencode.json").write_text(json.dumps(config))
        subprocess.run(["git", "init", "-q", str(session.project)], check=True)
        environment = {
            "HOOKYARD_LISTEN_SOCKET": str(session.place / "socket"),
            "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1", "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        }
        session.run([AGENT, "run", "go"], environment)
        keep_packages(plugins.parent)
        requests = session.requests()
        last = requests[-1]["messages"] if requests else []
        return session.ran(), [session.plain(str(message["content"])) for message in last if message["role"] == "tool"]


def judge(name, ran, read, expected, texts):
    """Prints whether a case came out as expected, and returns whether it did not."""
    is_right = ran == expected and len(read) == len(texts) and all(text in said for text, said in zip(texts, read))
    print("right " if is_right else "WRONG!", name, "" if is_right else f"{ran} {[said[:300] for said in read]}", flush=True)
    return not is_right


wrong = 0
for name, hooks, turns, expected, texts in CASES:
    if WANTED in name:
        wrong += judge(name, *run(hooks, turns), expected, texts)
for name, other, text in OTHERS:
    if WANTED in name:
        wrong += judge(name, *run(None, RUNS, other=other), [], [text])
sys.exit(wrong > 0)
