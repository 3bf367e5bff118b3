#!/usr/bin/env python3
"""Runs hooks once directly under CodeBuddy Code and once through hookyard, and compares what the model sees and what happens.

    tests/agents/codebuddy.py [path/to/codebuddy] [target/debug/hookyard] [part of a case's name]

Ends with 1 if a case differs that `docs/dialects.md` does not name, and with 0 where CodeBuddy Code is not installed. Its
program is in the package of its SDK: `node_modules/@tencent-ai/agent-sdk/cli/bin/codebuddy`.
"""

import json
import re

from compare import Session, arguments, compare, says

AGENT, HOOKYARD, WANTED = arguments("npm install @tencent-ai/agent-sdk", "codebuddy")
PRE, POST, FAILED, PROMPT = "PreToolUse", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit"
TEXT = [{"type": "text", "text": "working"}]


def call(number, command, name="Bash", **more):
    given = {"command": command, "description": "run"} if name == "Bash" else {}
    return {"type": "tool_use", "id": f"call_{number}", "name": name, "input": {**given, **more}}


def hook(*commands, **more):
    return [{"hooks": [{"type": "command", "command": command, **more} for command in commands]}]


def entry(command, **more):
    return [{**more, **hook(command)[0]}]


def specific(event, **answer):
    return says(hookSpecificOutput={"hookEventName": event, **answer})


def once(command):
    """A command that has a say the first time only."""
    return "cat > /dev/null; [ -e said ] && exit; touch said; " + command


NO = "echo no >&2; exit 2"
RUNS = [[call(1, "echo ran >> ran; cat ran")]]
TWO = [[call(1, "echo one >> ran")], [call(2, "echo two >> ran")]]
FAILS = [[call(1, "", name="Read", file_path="/nowhere/at/all")]]
WRITES = [[call(1, "", name="Write", file_path="$PROJECT/written", content="text")]]
DENY = {"permissionDecision": "deny", "permissionDecisionReason": "no"}
ALLOW = {"permissionDecision": "allow", "permissionDecisionReason": "yes"}
CHANGED = {"command": "echo changed >> ran; cat ran"}
HALT = {"continue": False, "stopReason": "over"}
SHOWS = 'for d in "$CODEBUDDY_PROJECT_DIR" "$CLAUDE_PROJECT_DIR"; do basename "$d"; done >> ran'
FIELDS = "python3 -c 'import json, sys; print(*sorted(json.load(sys.stdin)))' >> ran"
APPENDS = "echo hook >> ran"
SLOW = "sleep 0.5; "

# Name, hooks, turns of the model.
CASES = [
    ("no opinion", {PRE: hook("cat > /dev/null")}, RUNS),
    ("fields of the input", {event: hook(FIELDS) for event in (PRE, POST, PROMPT, "Stop", "SessionStart", "SessionEnd")}, RUNS),
    ("input read by lines", {PRE: hook("while read -r l; do echo no >&2; exit 2; done")}, RUNS),
    ("variables", {PRE: hook(SHOWS)}, RUNS),
    ("variables that are let through", {PRE: hook(SHOWS + "; echo $HOME | grep -c home >> ran", allowedEnvVars=["HOME"])}, RUNS),
    ("deny", {PRE: hook(specific(PRE, **DENY))}, RUNS),
    ("deny without a reason", {PRE: hook(specific(PRE, permissionDecision="deny"))}, RUNS),
    ("deny with the reason at the top",
     {PRE: hook(says(reason="top", hookSpecificOutput={"hookEventName": PRE, "permissionDecision": "deny"}))}, RUNS),
    ("deny without the name of an event", {PRE: hook(says(hookSpecificOutput=DENY))}, RUNS),
    ("deny for the name of another event", {PRE: hook(specific(POST, **DENY))}, RUNS),
    ("ask", {PRE: hook(specific(PRE, permissionDecision="ask", permissionDecisionReason="sure?"))}, RUNS),
    ("allow", {PRE: hook(specific(PRE, **ALLOW))}, RUNS),
    ("an unknown decision", {PRE: hook(specific(PRE, permissionDecision="never"))}, RUNS),
    ("an unknown decision at the top", {PRE: hook(says(decision="reject", reason="no"))}, RUNS),
    ("allow over a block at the top",
     {PRE: hook(says(decision="block", reason="no", hookSpecificOutput={"hookEventName": PRE, **ALLOW}))}, RUNS),
    ("block", {PRE: hook(says(decision="block", reason="no"))}, RUNS),
    ("deny at the top", {PRE: hook(says(decision="deny", reason="no"))}, RUNS),
    ("block without a reason", {PRE: hook(says(decision="block"))}, RUNS),
    ("block over continue", {PRE: hook(says(**{"continue": True, "decision": "block", "reason": "no"}))}, RUNS),
    ("approve over a halt", {PRE: hook(says(**HALT, decision="approve"))}, RUNS),
    ("approve", {PRE: hook(says(decision="approve", reason="yes"))}, RUNS),
    ("continue false before a tool", {PRE: hook(says(**HALT))}, TWO),
    ("continue false without a reason", {PRE: hook(says(**{"continue": False}))}, RUNS),
    ("updatedInput", {PRE: hook(specific(PRE, **ALLOW, updatedInput=CHANGED))}, RUNS),
    ("updatedInput without a decision", {PRE: hook(specific(PRE, updatedInput=CHANGED))}, RUNS),
    ("modifiedInput", {PRE: hook(specific(PRE, **ALLOW, modifiedInput=CHANGED))}, RUNS),
    ("two changed inputs",
     {PRE: hook(specific(PRE, updatedInput={"command": "echo first >> ran"}), SLOW + specific(PRE, updatedInput=CHANGED))}, RUNS),
    ("context before a tool", {PRE: hook(specific(PRE, additionalContext="mind"))}, RUNS),
    ("message", {PRE: hook(says(systemMessage="look"))}, RUNS),
    ("exit code 2", {PRE: hook(NO)}, RUNS),
    ("exit code 2 without a text", {PRE: hook("exit 2")}, RUNS),
    ("exit code 2 with text on standard output", {PRE: hook("echo out; echo err >&2; exit 2")}, RUNS),
    ("exit code 2 with JSON on standard output", {PRE: hook(says(decision="block", reason="json") + "; echo err >&2; exit 2")}, RUNS),
    ("exit code 2 over allow", {PRE: hook(specific(PRE, **ALLOW) + "; exit 2")}, RUNS),
    ("exit code 1", {PRE: hook("echo broken >&2; exit 1")}, RUNS),
    ("exit code 1 with JSON", {PRE: hook(says(decision="block", reason="no") + "; exit 1")}, RUNS),
    ("exit code 1 with deny", {PRE: hook(specific(PRE, **DENY) + "; exit 1")}, RUNS),
    ("exit code 3", {PRE: hook("echo broken; exit 3")}, RUNS),
    ("ended by a signal", {PRE: hook("kill -9 $$")}, RUNS),
    ("a program that is missing", {PRE: hook("/nowhere/guard")}, RUNS),
    ("timeout", {PRE: hook("sleep 5", timeout=1)}, RUNS),
    ("JSON on standard error", {PRE: hook(says(decision="block", reason="no") + " >&2")}, RUNS),
    ("plain text before a tool", {PRE: hook("echo hello")}, RUNS),
    ("broken JSON", {PRE: hook("echo '{hello'")}, RUNS),
    ("a line before JSON", {PRE: hook("echo log; " + says(decision="block", reason="no"))}, RUNS),
    ("two denials", {PRE: hook(SLOW + "echo first >&2; exit 2", "echo second >&2; exit 2")}, RUNS),
    ("denied and allowed", {PRE: hook(specific(PRE, **DENY), SLOW + specific(PRE, **ALLOW))}, RUNS),
    ("blocked and allowed", {PRE: hook(NO, SLOW + specific(PRE, **ALLOW))}, RUNS),
    ("async in the first line", {PRE: hook("echo '{\"async\":true}'; sleep 1; " + NO)}, RUNS),
    ("the same hook twice", {PRE: hook(APPENDS, APPENDS)}, RUNS),
    ("once", {PRE: hook(APPENDS, once=True)}, TWO),
    ("if of the command", {PRE: hook(NO, **{"if": "Bash(echo one:*)"})}, TWO),
    ("if of another tool", {PRE: hook(NO, **{"if": "Write"})}, RUNS),
    ("matcher", {PRE: entry(NO, matcher="Bash")}, RUNS),
    ("matcher of a part of a name", {PRE: entry(NO, matcher="as")}, RUNS),
    ("matcher of another tool", {PRE: entry(NO, matcher="Write")}, RUNS),
    ("matcher that is a list", {PRE: entry(NO, matcher="Read|Bash")}, RUNS),
    ("matcher with spaces", {PRE: entry(NO, matcher="Read, Bash")}, RUNS),
    ("matcher in small letters", {PRE: entry(NO, matcher="bash")}, RUNS),
    ("matcher that is no pattern", {PRE: entry(NO, matcher="*Bash")}, RUNS),
    ("any matcher", {PRE: entry(NO, matcher="*")}, RUNS),
    ("an unknown type", {PRE: [{"hooks": [{"type": "script", "script": "no"}, {"type": "command", "command": NO}]}]}, RUNS),
    ("block after a tool", {POST: hook(says(decision="block", reason="wrong"))}, RUNS),
    ("exit code 2 after a tool", {POST: hook(NO)}, RUNS),
    ("continue false after a tool", {POST: hook(says(**HALT))}, TWO),
    ("context after a tool", {POST: hook(specific(POST, additionalContext="mind <this>"))}, RUNS),
    ("two contexts after a tool",
     {POST: hook(specific(POST, additionalContext="mind"), SLOW + specific(POST, additionalContext="this"))}, RUNS),
    ("text after a tool", {POST: hook("echo hello")}, RUNS),
    ("context after a failure", {FAILED: hook(specific(FAILED, additionalContext="mind"))}, FAILS),
    ("block after a failure", {FAILED: hook(says(decision="block", reason="no"))}, FAILS),
    ("context with a prompt", {PROMPT: hook(specific(PROMPT, additionalContext="mind"))}, [TEXT]),
    ("text with a prompt", {PROMPT: hook("echo mind")}, [TEXT]),
    ("blocked prompt", {PROMPT: hook(says(decision="block", reason="no"))}, [TEXT]),
    ("prompt blocked by exit code", {PROMPT: hook(NO)}, [TEXT]),
    ("prompt with exit code 1", {PROMPT: hook("echo no >&2; exit 1")}, [TEXT]),
    ("continue false with a prompt", {PROMPT: hook(says(**HALT))}, [TEXT]),
    ("context at the start", {"SessionStart": hook(specific("SessionStart", additionalContext="mind"))}, [TEXT]),
    ("text at the start", {"SessionStart": hook("echo mind")}, [TEXT]),
    ("start of another kind", {"SessionStart": entry("echo mind", matcher="resume")}, [TEXT]),
    ("blocked stop", {"Stop": hook(once(says(decision="block", reason="go on")))}, [TEXT, TEXT]),
    ("stop blocked by exit code", {"Stop": hook(once(NO))}, [TEXT, TEXT]),
    ("continue false at a stop", {"Stop": hook(once(says(**{"continue": False, "reason": "go on"})))}, [TEXT, TEXT]),
    ("stop with exit code 1", {"Stop": hook(once("echo no >&2; exit 1"))}, [TEXT, TEXT]),
    ("context at a stop", {"Stop": hook(once(specific("Stop", additionalContext="mind")))}, [TEXT]),
    ("end of the session", {"SessionEnd": hook("echo ended >> ran")}, [TEXT]),
    ("a hook of the local settings", {PRE: hook(NO)}, RUNS, "local"),
    ("a file with comments", {PRE: hook(NO)}, RUNS, "comments"),
    ("hooks of two files", {PRE: hook(SLOW + APPENDS)}, RUNS, "both"),
]

# Those that differ, and why: `docs/dialects.md`.
DIFFERENT = [
    "fields of the input", "variables that are let through", "deny without a reason", "block without a reason",
    "continue false without a reason", "modifiedInput", "exit code 2 without a text", "exit code 2 over allow",
    "ended by a signal", "timeout", "denied and allowed", "blocked and allowed", "two contexts after a tool",
]


def run(hooks, turns, place="user", *, through):
    """One session: the exit code, what ran, and what the model read."""
    with Session(HOOKYARD) as session:
        def settings(place, written):
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(json.dumps({"hooks": written}))

        home, project = session.home / ".codebuddy", session.project / ".codebuddy"
        given = (session.place / "elsewhere/.codebuddy" if through else home) / "settings.json"
        if place == "user":
            settings(given, hooks)
        elif place == "comments":
            settings(given, hooks)
            given.write_text("// one\n" + given.read_text()[:-1] + ", /* two */ }")
        elif place == "local":
            settings(project / "settings.local.json", hooks)
        else:
            settings(given, {event: hook("echo user >> ran") for event in hooks})
            settings(project / "settings.json", hooks)
        if through:
            # CodeBuddy does not run them itself.
            relay = session.relay("codebuddy", "watch=false")
            for file in project.glob("settings*"):
                file.unlink()
            settings(home / "settings.json", {event: hook(relay) for event in hooks})
        port = session.model(json.loads(json.dumps(turns).replace("$PROJECT", str(session.project))))
        model = {"id": "mock", "name": "mock", "vendor": "mock", "apiKey": "none", "supportsToolCall": True,
                 "url": f"http://127.0.0.1:{port}/v1/chat/completions", "maxInputTokens": 200000, "maxOutputTokens": 8000}
        home.mkdir(exist_ok=True)
        (home / "models.json").write_text(json.dumps({"models": [model], "availableModels": ["mock"]}))
        code = session.run([AGENT, "-p", "go", "--model", "mock", "-y"], {"CODEBUDDY_API_KEY": "none", "CODEBUDDY_DISABLE_AUTO_MEMORY": "1"})
        return code, session.ran(), [texts(session, request) for request in session.requests()]


def texts(session, request):
    """What the model reads from a person, a hook or a tool."""
    found = []
    for message in request["messages"]:
        content = message["content"] if message["role"] in ("user", "tool") else None
        parts = [content] if isinstance(content, str) else [part.get("text", "") for part in content or []]
        found += [session.plain(part) for part in parts if "# codebuddyMd" not in part]
    return [re.sub(r" (?=</)|Task ID: \S+|PID: \d+|[\d.]+ ?m?s\b", "", text) for text in found]


compare(CASES, WANTED, run, DIFFERENT)
