#!/usr/bin/env python3
"""Runs hooks once directly under Qwen Code and once through hookyard, and compares what the model sees and what happens.

    tests/agents/qwen.py [path/to/qwen] [target/debug/hookyard] [part of a case's name]

Ends with 1 if a case differs that `docs/dialects.md` does not name, and with 0 where Qwen Code is not installed.
"""

import json
import re

from compare import Session, arguments, compare, says

AGENT, HOOKYARD, WANTED = arguments("npm install @qwen-code/qwen-code", "qwen")
PRE, ASKED, POST, FAILED, PROMPT = "PreToolUse", "PermissionRequest", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit"
TEXT = [{"type": "text", "text": "working"}]
TOOL = "run_shell_command"


def call(number, command, name=TOOL, **more):
    given = {"command": command, "description": "run", "is_background": False} if name == TOOL else {}
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
# With a pause: Qwen Code loses the output of a shell that ends at once, now and then.
RUNS = [[call(1, "echo ran >> ran; cat ran; sleep 0.5")]]
TWO = [[call(1, "echo one >> ran")], [call(2, "echo two >> ran")]]
FAILS = [[call(1, "", name="read_file", file_path="/nowhere/at/all")]]
# Qwen Code 0.24 would not wait for it.
AGENT_CALL = {"description": "look", "prompt": "look", "subagent_type": "general-purpose", "run_in_background": False}
AGENTS = [[call(1, "", name="agent", **AGENT_CALL)], TEXT, TEXT]
DENY = {"permissionDecision": "deny", "permissionDecisionReason": "no"}
ALLOW = {"permissionDecision": "allow", "permissionDecisionReason": "yes"}
CHANGED = {"command": "echo changed >> ran; cat ran; sleep 0.5", "description": "run", "is_background": False}
HALT = {"continue": False, "stopReason": "over"}
SHOWS = 'for d in "$QWEN_PROJECT_DIR" "$GEMINI_PROJECT_DIR" "$CLAUDE_PROJECT_DIR"; do basename "$d"; done >> ran'
FIELDS = "python3 -c 'import json, sys; print(*sorted(json.load(sys.stdin)))' >> ran"
INPUT = "python3 -c 'import json, sys; print(json.load(sys.stdin)[\"tool_input\"][\"command\"].replace(\" \", \"_\"))' >> ran"
APPENDS = "echo hook >> ran"
SLOW = "sleep 0.5; "

# Name, hooks, turns of the model.
CASES = [
    ("no opinion", {PRE: hook("cat > /dev/null")}, RUNS),
    ("fields of the input", {event: hook(FIELDS) for event in (PRE, POST, PROMPT, "Stop")}, RUNS),
    ("input read by lines", {PRE: hook("while read -r l; do echo no >&2; exit 2; done")}, RUNS),
    ("variables", {PRE: hook(SHOWS)}, RUNS),
    ("variables of a hook", {PRE: hook("echo $OWN >> ran", env={"OWN": "value"})}, RUNS),
    ("deny", {PRE: hook(specific(PRE, **DENY))}, RUNS),
    ("deny without a reason", {PRE: hook(specific(PRE, permissionDecision="deny"))}, RUNS),
    ("deny with the reason at the top",
     {PRE: hook(says(reason="top", hookSpecificOutput={"hookEventName": PRE, "permissionDecision": "deny"}))}, RUNS),
    ("deny without the name of an event", {PRE: hook(says(hookSpecificOutput=DENY))}, RUNS),
    ("deny for the name of another event", {PRE: hook(specific(POST, **DENY))}, RUNS),
    ("deny with context", {PRE: hook(specific(PRE, **DENY, additionalContext="mind"))}, RUNS),
    ("ask", {PRE: hook(specific(PRE, permissionDecision="ask", permissionDecisionReason="sure?"))}, RUNS),
    ("ask without a reason", {PRE: hook(specific(PRE, permissionDecision="ask"))}, RUNS),
    ("ask at the top", {PRE: hook(says(decision="ask", reason="sure?"))}, RUNS),
    ("allow", {PRE: hook(specific(PRE, **ALLOW))}, RUNS),
    ("an unknown decision", {PRE: hook(specific(PRE, permissionDecision="never"))}, RUNS),
    ("an unknown decision at the top", {PRE: hook(says(decision="reject", reason="no"))}, RUNS),
    ("allow over a block at the top",
     {PRE: hook(says(decision="block", reason="no", hookSpecificOutput={"hookEventName": PRE, **ALLOW}))}, RUNS),
    ("block", {PRE: hook(says(decision="block", reason="no"))}, RUNS),
    ("deny at the top", {PRE: hook(says(decision="deny", reason="no"))}, RUNS),
    ("block without a reason", {PRE: hook(says(decision="block"))}, RUNS),
    ("approve", {PRE: hook(says(decision="approve", reason="yes"))}, RUNS),
    ("continue false before a tool", {PRE: hook(says(**HALT))}, TWO),
    ("continue false without a reason", {PRE: hook(says(**{"continue": False}))}, RUNS),
    ("changed input", {PRE: hook(specific(PRE, **ALLOW, updatedInput=CHANGED))}, RUNS),
    ("context before a tool", {PRE: hook(specific(PRE, additionalContext="mind"))}, RUNS),
    ("message", {PRE: hook(says(systemMessage="look"))}, RUNS),
    ("exit code 2", {PRE: hook(NO)}, RUNS),
    ("exit code 2 without a text", {PRE: hook("exit 2")}, RUNS),
    ("exit code 2 with text on standard output", {PRE: hook("echo no; exit 2")}, RUNS),
    ("exit code 2 with JSON on standard output", {PRE: hook(says(decision="block", reason="no") + "; exit 2")}, RUNS),
    ("exit code 2 with JSON on standard error",
     {PRE: hook(says(decision="block", reason="json") + " >&2; exit 2")}, RUNS),
    ("exit code 1", {PRE: hook("echo broken >&2; exit 1")}, RUNS),
    ("exit code 1 with JSON", {PRE: hook(says(decision="block", reason="no") + "; exit 1")}, RUNS),
    ("exit code 3", {PRE: hook("echo broken; exit 3")}, RUNS),
    ("JSON on standard error", {PRE: hook(says(decision="block", reason="no") + " >&2")}, RUNS),
    ("JSON in a string", {PRE: hook("echo '" + json.dumps(json.dumps({"decision": "block", "reason": "no"})) + "'")}, RUNS),
    ("plain text before a tool", {PRE: hook("echo hello")}, RUNS),
    ("broken JSON", {PRE: hook("echo '{hello'")}, RUNS),
    ("a line before JSON", {PRE: hook("echo log; " + says(decision="block", reason="no"))}, RUNS),
    ("two denials", {PRE: hook(SLOW + "echo first >&2; exit 2", "echo second >&2; exit 2")}, RUNS),
    ("denied and allowed", {PRE: hook(specific(PRE, **DENY), SLOW + specific(PRE, **ALLOW))}, RUNS),
    ("a hook without a say", {PRE: hook(NO, **{"async": True})}, RUNS),
    ("timeout", {PRE: hook("sleep 5; " + NO, timeout=500)}, RUNS),
    ("the same hook twice", {PRE: hook(APPENDS, APPENDS)}, RUNS),
    ("the same hook under two names",
     {PRE: [{"hooks": [{"type": "command", "command": APPENDS, "name": name} for name in "ab"]}]}, RUNS),
    ("one after the other",
     {PRE: [{"sequential": True, "hooks": hook("cat > /dev/null; sleep 0.5; echo a >> ran", "cat > /dev/null; echo b >> ran")[0]["hooks"]}]}, RUNS),
    ("input for the next hook",
     {PRE: [{"sequential": True, "hooks": hook(specific(PRE, tool_input={"command": "other"}), INPUT)[0]["hooks"]}]}, RUNS),
    ("matcher", {PRE: entry(NO, matcher=TOOL)}, RUNS),
    ("matcher of a part of a name", {PRE: entry(NO, matcher="shell")}, RUNS),
    ("matcher of another tool", {PRE: entry(NO, matcher="Bash")}, RUNS),
    ("matcher that is a list", {PRE: entry(NO, matcher="read_file|run_shell_command")}, RUNS),
    ("matcher with spaces", {PRE: entry(NO, matcher=" run_shell_command ")}, RUNS),
    ("matcher that is no pattern", {PRE: entry(NO, matcher="*shell")}, RUNS),
    ("switches beside the events",
     {PRE: [{"hooks": [{"type": "command", "command": NO, "name": "guard"}]}], "enabled": False, "disabled": ["guard"],
      "notifications": False}, RUNS),
    ("an unknown type", {PRE: [{"hooks": [{"type": "prompt", "prompt": "no"}, {"type": "command", "command": NO}]}]}, RUNS),
    ("block after a tool", {POST: hook(says(decision="block", reason="wrong"))}, RUNS),
    ("exit code 2 after a tool", {POST: hook(NO)}, RUNS),
    ("continue false after a tool", {POST: hook(says(**HALT))}, TWO),
    ("context after a tool", {POST: hook(specific(POST, additionalContext="mind <this>"))}, RUNS),
    ("two contexts after a tool",
     {POST: hook(specific(POST, additionalContext="mind"), SLOW + specific(POST, additionalContext="this"))}, RUNS),
    ("changed output", {POST: hook(specific(POST, updatedToolOutput="other"))}, RUNS),
    ("context after a failure", {FAILED: hook(specific(FAILED, additionalContext="mind"))}, FAILS),
    ("block after a failure", {FAILED: hook(says(decision="block", reason="no"))}, FAILS),
    ("context with a prompt", {PROMPT: hook(once(specific(PROMPT, additionalContext="mind")))}, [TEXT]),
    ("text with a prompt", {PROMPT: hook("echo mind")}, [TEXT]),
    ("text in colour with a prompt", {PROMPT: hook(r"printf '\033]0;x\007\033[31mmind\033[0m\tthis\nand that\n'")}, [TEXT]),
    ("text on standard error with a prompt", {PROMPT: hook("echo mind >&2")}, [TEXT]),
    ("text of a failure with a prompt", {PROMPT: hook("echo mind; exit 1")}, [TEXT]),
    ("context at the start", {"SessionStart": hook(specific("SessionStart", additionalContext="mind"))}, [TEXT]),
    ("text at the start", {"SessionStart": hook("echo mind", "echo this")}, [TEXT]),
    ("blocked prompt", {PROMPT: hook(says(decision="block", reason="no"))}, [TEXT]),
    ("prompt blocked by exit code", {PROMPT: hook(NO)}, [TEXT]),
    ("continue false with a prompt", {PROMPT: hook(says(**HALT))}, [TEXT]),
    ("blocked results of tools", {PROMPT: hook("grep -q '\"prompt\":\"\"' && { " + NO + "; }; exit 0")}, RUNS),
    ("blocked stop", {"Stop": hook(once(says(decision="block", reason="go on")))}, [TEXT, TEXT]),
    ("stop blocked by exit code", {"Stop": hook(once(NO))}, [TEXT, TEXT]),
    ("continue false at a stop", {"Stop": hook(once(says(**HALT)))}, [TEXT, TEXT]),
    ("context at a stop", {"Stop": hook(once(specific("Stop", additionalContext="mind")))}, [TEXT]),
    ("notification", {"Notification": entry("cat > /dev/null; echo told >> ran", matcher="auth_success")}, [TEXT]),
    ("notification of another type", {"Notification": entry("cat > /dev/null; echo told >> ran", matcher="auth")}, [TEXT]),
    ("context for a subagent", {"SubagentStart": hook(specific("SubagentStart", additionalContext="mind"))}, AGENTS),
    ("blocked stop of a subagent", {"SubagentStop": hook(once(says(decision="block", reason="go on")))}, AGENTS),
    ("allowed permission", {ASKED: hook(specific(ASKED, decision={"behavior": "allow"}))}, RUNS),
    ("allowed permission with changed input",
     {ASKED: hook(specific(ASKED, decision={"behavior": "allow", "updatedInput": CHANGED}))}, RUNS),
    ("denied permission", {ASKED: hook(specific(ASKED, decision={"behavior": "deny", "message": "no"}))}, RUNS),
    ("denied permission without a message", {ASKED: hook(specific(ASKED, decision={"behavior": "deny"}))}, RUNS),
    ("permission allowed and denied",
     {ASKED: hook(specific(ASKED, decision={"behavior": "allow"}),
                  specific(ASKED, decision={"behavior": "deny", "message": "no"}))}, RUNS),
]

# Those that differ, and why: `docs/dialects.md`.
DIFFERENT = [
    "changed input", "denied and allowed", "block after a tool", "exit code 2 after a tool",
]

SETTINGS = {
    "security": {"auth": {"selectedType": "openai"}},
    "privacy": {"usageStatisticsEnabled": False},
    "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
    "memory": {"enableManagedAutoMemory": False},
    "model": {"skipNextSpeakerCheck": True},
}
NOT_EVENTS = ["disabled", "enabled", "notifications"]


def run(hooks, turns, *, through):
    """One session: the exit code, what ran, and what the model read."""
    with Session(HOOKYARD) as session:
        def settings(home, written):
            (session.place / home / ".qwen").mkdir(parents=True)
            (session.place / home / ".qwen/settings.json").write_text(json.dumps({**SETTINGS, "hooks": written}))

        if through:
            settings("elsewhere", hooks)
            relay = session.relay("qwen")
            settings("home", {event: hook(relay) for event in hooks if event not in NOT_EVENTS})
        else:
            settings("home", hooks)
        asks = ASKED in hooks
        prompt = {"type": "user", "session_id": "one", "parent_tool_use_id": None, "message": {"role": "user", "content": "go"}}
        arguments = ["--input-format", "stream-json", "--output-format", "stream-json"] if asks else ["--approval-mode", "yolo", "-p", "go"]
        environment = {
            "OPENAI_API_KEY": "none", "OPENAI_MODEL": "mock", "OPENAI_BASE_URL": f"http://127.0.0.1:{session.model(turns)}/v1",
            "QWEN_CODE_NO_RELAUNCH": "true",
        }
        code = session.run([AGENT, *arguments], environment, json.dumps(prompt) + "\n" if asks else "")
        return code, session.ran(), [texts(session, request) for request in session.requests()]


# How Qwen Code's own reminders begin, which stand beside a prompt and differ between sessions.
OWN_REMINDERS = re.compile(r"<system-reminder> (The following (skills|tools) |The current date|This is the Qwen Code)")

# What hooks at the start of a session add to the system prompt.
START_CONTEXT = r"<qwen:session-start-context.*?</qwen:session-start-context>"


def texts(session, request):
    """What the model reads from a person, a hook or a tool."""
    found = []
    for message in request["messages"]:
        content = message["content"] if message["role"] in ("user", "tool") else None
        if message["role"] == "system":
            content = "".join(re.findall(START_CONTEXT, json.dumps(message["content"])))
        parts = [content] if isinstance(content, str) else [part.get("text", "") for part in content or []]
        plain = [re.sub(r"PGID: \d+", "", session.plain(part)) for part in parts]
        found.append(" ".join(part for part in plain if not OWN_REMINDERS.match(part)))
    return found


compare(CASES, WANTED, run, DIFFERENT)
