#!/usr/bin/env python3
"""Runs hooks once directly under Codex and once through hookyard, and compares what the model sees and what happens.

    tests/agents/codex.py [path/to/codex] [target/debug/hookyard] [part of a case's name]

Ends with 1 if a case differs that `docs/dialects.md` does not name, and with 0 where Codex is not installed.
"""

import json
import re
import subprocess

from compare import Session, arguments, compare, says

AGENT, HOOKYARD, WANTED = arguments("npm install @openai/codex", "codex")
PRE, ASKED, POST, PROMPT = "PreToolUse", "PermissionRequest", "PostToolUse", "UserPromptSubmit"
TEXT = [{"type": "text", "text": "working"}]


def call(number, command, **more):
    return {"type": "tool_use", "id": f"call_{number}", "name": "exec_command", "input": {"cmd": command, **more}}


def hook(*commands, **more):
    return [{"hooks": [{"type": "command", "command": command, **more} for command in commands]}]


def matched(matcher):
    return [{"matcher": matcher, **hook(NO)[0]}]


def specific(event, **answer):
    return says(hookSpecificOutput={"hookEventName": event, **answer})


def once(command):
    """A command that has a say unless the agent goes on because of it already."""
    return "case $(cat) in *active\\\":true*) exit;; esac; " + command


NO = "echo no >&2; exit 2"
RUNS = [[call(1, "echo ran >> ran; cat ran")]]
TWO = [[call(1, "echo one >> ran")], [call(2, "echo two >> ran")]]
ESCALATES = [[call(1, "echo ran >> ran", sandbox_permissions="require_escalated", justification="please")]]
REVIEWED = ["--approve-for-me"]
DENY = {"permissionDecision": "deny", "permissionDecisionReason": "no"}
CHANGED = {"command": "echo changed >> ran; cat ran"}
HALT = {"continue": False, "stopReason": "over"}

# Name, hooks, turns of the model, further arguments.
CASES = [
    ("no opinion", {PRE: hook("cat > /dev/null")}, RUNS),
    ("deny", {PRE: hook(specific(PRE, **DENY))}, RUNS),
    ("deny with context", {PRE: hook(specific(PRE, **DENY, additionalContext="mind"))}, RUNS),
    ("deny without a reason", {PRE: hook(specific(PRE, permissionDecision="deny"))}, RUNS),
    ("deny for the name of another event", {PRE: hook(specific(POST, **DENY))}, RUNS),
    ("deny without the name of an event", {PRE: hook(says(hookSpecificOutput=DENY))}, RUNS),
    ("ask", {PRE: hook(specific(PRE, permissionDecision="ask", permissionDecisionReason="sure?"))}, RUNS),
    ("allow", {PRE: hook(specific(PRE, permissionDecision="allow"))}, RUNS),
    ("changed input", {PRE: hook(specific(PRE, permissionDecision="allow", updatedInput=CHANGED))}, RUNS),
    ("changed input without allow", {PRE: hook(specific(PRE, updatedInput=CHANGED))}, RUNS),
    ("changed input with context",
     {PRE: hook(specific(PRE, permissionDecision="allow", updatedInput=CHANGED, additionalContext="mind"))}, RUNS),
    ("changed input with an argument",
     {PRE: hook(specific(PRE, permissionDecision="allow", updatedInput={**CHANGED, "workdir": "/"}))}, RUNS),
    ("changed input without a command",
     {PRE: hook(specific(PRE, permissionDecision="allow", updatedInput={"cmd": "true"}))}, RUNS),
    ("block", {PRE: hook(says(decision="block", reason="no"))}, RUNS),
    ("block without a reason", {PRE: hook(says(decision="block"))}, RUNS),
    ("approve", {PRE: hook(says(decision="approve"))}, RUNS),
    ("block and an unknown field", {PRE: hook(says(decision="block", reason="no", severity=1))}, RUNS),
    ("block and suppressOutput", {PRE: hook(says(decision="block", reason="no", suppressOutput=True))}, RUNS),
    ("continue false before a tool", {PRE: hook(says(**HALT))}, RUNS),
    ("context before a tool", {PRE: hook(specific(PRE, additionalContext="mind"))}, RUNS),
    ("message", {PRE: hook(says(systemMessage="look"))}, RUNS),
    ("exit code 2", {PRE: hook(NO)}, RUNS),
    ("exit code 2 without a text", {PRE: hook("exit 2")}, RUNS),
    ("exit code 2 with JSON", {PRE: hook(says(decision="block", reason="no") + "; exit 2")}, RUNS),
    ("exit code 1", {PRE: hook("echo broken >&2; exit 1")}, RUNS),
    ("plain text before a tool", {PRE: hook("echo hello")}, RUNS),
    ("broken JSON", {PRE: hook("echo '{hello'")}, RUNS),
    ("a line before JSON", {PRE: hook("echo log; " + says(decision="block", reason="no"))}, RUNS),
    ("a byte order mark", {PRE: hook(r"printf '\357\273\277'; " + says(decision="block", reason="no"))}, RUNS),
    ("input read by lines", {PRE: hook("while read -r l; do echo no >&2; exit 2; done")}, RUNS),
    ("two denials", {PRE: hook("sleep 0.2; echo first >&2; exit 2", "echo second >&2; exit 2")}, RUNS),
    ("a hook without a say", {PRE: hook(NO, **{"async": True})}, RUNS),
    ("timeout", {PRE: hook("sleep 5; " + NO, timeout=1)}, RUNS),
    ("matcher", {PRE: matched("Bash")}, RUNS),
    ("matcher of another tool", {PRE: matched("exec_command")}, RUNS),
    ("matcher with spaces", {PRE: matched("Read | Bash")}, RUNS),
    ("matcher that is a pattern", {PRE: matched("^B.sh$")}, RUNS),
    ("allowed permission", {ASKED: hook(specific(ASKED, decision={"behavior": "allow"}))}, ESCALATES, REVIEWED),
    ("denied permission", {ASKED: hook(specific(ASKED, decision={"behavior": "deny", "message": "no"}))}, ESCALATES, REVIEWED),
    ("denied permission without a message",
     {ASKED: hook(specific(ASKED, decision={"behavior": "deny"}))}, ESCALATES, REVIEWED),
    ("permission with changed input",
     {ASKED: hook(specific(ASKED, decision={"behavior": "allow", "updatedInput": CHANGED}))}, ESCALATES, REVIEWED),
    ("permission denied by exit code", {ASKED: hook(NO)}, ESCALATES, REVIEWED),
    ("permission allowed and denied",
     {ASKED: hook(specific(ASKED, decision={"behavior": "allow"}), NO)}, ESCALATES, REVIEWED),
    ("block after a tool", {POST: hook(says(decision="block", reason="wrong"))}, RUNS),
    ("two blocks after a tool", {POST: hook("sleep 0.2; echo first >&2; exit 2", "echo second >&2; exit 2")}, RUNS),
    ("exit code 2 after a tool", {POST: hook(NO)}, RUNS),
    ("continue false after a tool", {POST: hook(says(**HALT))}, TWO),
    ("context after a tool", {POST: hook(specific(POST, additionalContext="mind"))}, RUNS),
    ("changed output", {POST: hook(specific(POST, updatedMCPToolOutput={"a": 1}))}, RUNS),
    ("reason without a decision after a tool", {POST: hook(says(reason="wrong"))}, RUNS),
    ("context with a prompt", {PROMPT: hook(specific(PROMPT, additionalContext="mind"))}, [TEXT]),
    ("text with a prompt", {PROMPT: hook("echo mind")}, [TEXT]),
    ("text with a brace", {PROMPT: hook("echo '{mind}'")}, [TEXT]),
    ("blocked prompt", {PROMPT: hook(says(decision="block", reason="no"))}, [TEXT]),
    ("prompt blocked by exit code", {PROMPT: hook(NO)}, [TEXT]),
    ("continue false with a prompt", {PROMPT: hook(says(**HALT))}, [TEXT]),
    ("context at the start", {"SessionStart": hook(specific("SessionStart", additionalContext="mind"))}, [TEXT]),
    ("text at the start", {"SessionStart": hook("echo mind")}, [TEXT]),
    ("continue false at the start", {"SessionStart": hook(says(**HALT))}, [TEXT]),
    ("block at the start", {"SessionStart": hook(NO)}, [TEXT]),
    ("blocked stop", {"Stop": hook(once(says(decision="block", reason="go on")))}, [TEXT, TEXT]),
    ("stop blocked twice",
     {"Stop": hook(once("sleep 0.2; echo first >&2; exit 2"), once("echo second >&2; exit 2"))}, [TEXT, TEXT]),
    ("stop blocked by exit code", {"Stop": hook(once(NO))}, [TEXT, TEXT]),
    ("continue false at a stop", {"Stop": hook(says(**HALT))}, [TEXT]),
    ("context at a stop", {"Stop": hook(specific("Stop", additionalContext="mind"))}, [TEXT]),
    ("end of the session", {"SessionEnd": hook("cat > /dev/null; echo ended >> ran")}, [TEXT]),
    ("requests to the model",
     {event: hook(f"cat > /dev/null; echo {event} >> ran; exit 2") for event in ("PreModelRequest", "PostModelRequest")}, [TEXT]),
]

# Those that differ, and why: `docs/dialects.md`.
DIFFERENT = ["changed input with an argument", "changed input without a command"]


def run(hooks, turns, further=(), *, through):
    """One session: the exit code, what ran, and what the model read."""
    with Session(HOOKYARD) as session:
        config = session.home / ".codex"
        config.mkdir()
        (session.project / ".codex").mkdir()
        (session.project / ".codex/hooks.json").write_text(json.dumps({"hooks": hooks}))
        subprocess.run(["git", "init", "-q", str(session.project)], check=True)
        if through:
            relay = session.relay("codex")
            (config / "hooks.json").write_text(json.dumps({"hooks": {event: hook(relay) for event in hooks}}))
        # Codex reads no hooks of a project that is not trusted, so it runs hookyard's entry alone.
        (config / "config.toml").write_text(
            f'model = "mock"\nmodel_provider = "mock"\n[model_providers.mock]\nname = "mock"\nwire_api = "responses"\n'
            f'base_url = "http://127.0.0.1:{session.model(turns)}/v1"\n'
            f'[projects."{session.project}"]\ntrust_level = "{"untrusted" if through else "trusted"}"\n')
        sandbox = further or ["--dangerously-bypass-approvals-and-sandbox"]
        command = [AGENT, "exec", "--json", "--dangerously-bypass-hook-trust", *sandbox, "go"]
        code = session.run(command, {"CODEX_HOME": str(config)})
        seen = [texts(session, request) for request in session.requests()]
        return code, session.ran(), [request for request in seen if request is not None]


def texts(session, request):
    """What the model reads from a hook or a tool; nothing if the request is that of a reviewer."""
    found = []
    for item in request["input"]:
        output = item.get("output")
        content = item.get("content") if item.get("role") in ("user", "developer") else None
        parts = [output] if isinstance(output, str) else [part.get("text", "") for part in output or content or []]
        text = " ".join(session.plain(part) for part in parts)
        if "TRANSCRIPT" in text:
            return None
        text = re.sub(r"Chunk ID: \w+|Wall time: [\d.]+ seconds|</?hook_prompt[^>]*>", "", text)
        if text and not text.startswith(("<", "You are")) and "permissions instructions" not in text:
            found.append(text)
    return found


compare(CASES, WANTED, run, DIFFERENT)
