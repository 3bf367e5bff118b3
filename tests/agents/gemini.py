#!/usr/bin/env python3
"""Runs hooks once directly under Gemini CLI and once through hookyard, and compares what the model sees and what happens.

    tests/agents/gemini.py [path/to/gemini] [target/debug/hookyard] [part of a case's name]

Ends with 1 if a case differs that `docs/dialects.md` does not name, and with 0 where Gemini CLI is not installed.
"""

import json
import re

from compare import Session, arguments, compare, says

AGENT, HOOKYARD, WANTED = arguments("npm install @google/gemini-cli", "gemini")
PRE, POST, PROMPT, STOP = "BeforeTool", "AfterTool", "BeforeAgent", "AfterAgent"
ASKS, ANSWERED, TOOLS = "BeforeModel", "AfterModel", "BeforeToolSelection"
TEXT = [{"type": "text", "text": "working"}]
TOOL = "run_shell_command"


def call(number, command, name=TOOL, **more):
    given = {"command": command} if name == TOOL else {}
    return {"type": "tool_use", "id": f"call_{number}", "name": name, "input": {**given, **more}}


def hook(*commands, **more):
    return [{"hooks": [{"type": "command", "command": command, **more} for command in commands]}]


def entry(*commands, **more):
    return [{**more, **hook(*commands)[0]}]


def specific(event=PRE, **answer):
    return says(hookSpecificOutput={"hookEventName": event, **answer})


def once(command):
    """A command that has a say the first time only."""
    return "cat > /dev/null; [ -e said ] && exit; touch said; " + command


def changes(command, **more):
    return specific(tool_input={"command": command, **more})


NO = "echo no >&2; exit 2"
RUNS = [[call(1, "echo ran >> ran; cat ran")]]
TWO = [[call(1, "echo one >> ran")], [call(2, "echo two >> ran")]]
READS = [[call(1, "", name="read_file", file_path="/nowhere/at/all")]]
DENY = {"decision": "deny", "reason": "no"}
HALT = {"continue": False, "stopReason": "over"}
SHOWS = 'for d in "$GEMINI_PROJECT_DIR" "$GEMINI_CWD" "$CLAUDE_PROJECT_DIR"; do basename "$d"; done >> ran; ' \
        'echo ${GEMINI_SESSION_ID:+id} ${GEMINI_PLANS_DIR:+plans} >> ran'
FIELDS = "python3 -c 'import json, sys; print(*sorted(json.load(sys.stdin)))' >> ran"
INPUT = "python3 -c 'import json, sys; print(json.load(sys.stdin)[\"tool_input\"][\"command\"].replace(\" \", \"_\"))' >> ran"
PROMPTS = "python3 -c 'import json, sys; print(\"_\".join(json.load(sys.stdin)[\"prompt\"].split()))' >> ran"
REQUESTS = "python3 -c 'import json, sys; print(*sorted(json.load(sys.stdin)[\"llm_request\"]))' >> ran"
APPENDS = "cat > /dev/null; echo hook >> ran"
SLOW = "sleep 0.3; "
ANSWER = {"candidates": [{"content": {"role": "model", "parts": ["other"]}, "finishReason": "STOP"}]}

# Name, hooks, turns of the model.
CASES = [
    ("no opinion", {PRE: hook("cat > /dev/null")}, RUNS),
    ("an empty object", {PRE: hook("cat > /dev/null; echo '{}'")}, RUNS),
    ("fields of the input", {event: hook(FIELDS) for event in (PRE, POST, PROMPT, STOP, "SessionStart", "SessionEnd")}, RUNS),
    ("fields of the input about the model", {event: hook(FIELDS) for event in (ASKS, ANSWERED, TOOLS)}, [TEXT]),
    ("fields of a request", {ASKS: hook(REQUESTS)}, [TEXT]),
    ("input read by lines", {PRE: hook("while read -r l; do echo no >&2; exit 2; done")}, RUNS),
    ("variables", {PRE: hook(SHOWS)}, RUNS),
    ("variables in the command", {PRE: hook("cat > /dev/null; basename $GEMINI_PROJECT_DIR >> ran")}, RUNS),
    ("variables of a hook", {PRE: hook("echo $OWN >> ran", env={"OWN": "value"})}, RUNS),
    ("deny", {PRE: hook(says(**DENY))}, RUNS),
    ("deny without a reason", {PRE: hook(says(decision="deny"))}, RUNS),
    ("deny with a message", {PRE: hook(says(**DENY, systemMessage="look"))}, RUNS),
    ("deny with a changed input", {PRE: hook(says(**DENY, hookSpecificOutput={"tool_input": {"command": "true"}}))}, RUNS),
    ("deny in Claude's words", {PRE: hook(specific(permissionDecision="deny", permissionDecisionReason="no"))}, RUNS),
    ("block", {PRE: hook(says(decision="block", reason="no"))}, RUNS),
    ("ask", {PRE: hook(says(decision="ask", reason="sure?"))}, RUNS),
    ("ask with a message", {PRE: hook(says(decision="ask", systemMessage="sure?"))}, RUNS),
    ("allow", {PRE: hook(says(decision="allow", reason="yes"))}, RUNS),
    ("approve", {PRE: hook(says(decision="approve"))}, RUNS),
    ("an unknown decision", {PRE: hook(says(decision="reject", reason="no"))}, RUNS),
    ("an unknown decision beside a changed input",
     {PRE: hook(says(decision="reject", hookSpecificOutput={"tool_input": {"command": "echo changed >> ran"}}))}, RUNS),
    ("deny with a reason that is a number", {PRE: hook(says(decision="deny", reason=5))}, RUNS),
    ("deny beside a field of a wrong type", {PRE: hook(says(**DENY, suppressOutput="yes"))}, RUNS),
    ("deny beside a specific output that is a text", {PRE: hook(says(**DENY, hookSpecificOutput="text"))}, RUNS),
    ("halt before a tool", {PRE: hook(says(**HALT))}, TWO),
    ("halt without a reason", {PRE: hook(says(**{"continue": False}))}, RUNS),
    ("halt for the reason of a decision", {PRE: hook(says(**{"continue": False}, **DENY))}, RUNS),
    ("changed input", {PRE: hook(changes("echo changed >> ran; cat ran"))}, RUNS),
    ("changed input with an argument", {PRE: hook(changes("echo changed >> ran", description="other"))}, RUNS),
    ("changed input without a command", {PRE: hook(specific(tool_input={"description": "other"}))}, RUNS),
    ("changed input that is no object", {PRE: hook(specific(tool_input="text"))}, RUNS),
    ("changed input of two hooks", {PRE: hook(changes("echo one >> ran"), SLOW + changes("echo two >> ran"))}, RUNS),
    ("message", {PRE: hook(says(systemMessage="look"))}, RUNS),
    ("context before a tool", {PRE: hook(specific(additionalContext="mind"))}, RUNS),
    ("exit code 2", {PRE: hook(NO)}, RUNS),
    ("exit code 2 without a text", {PRE: hook("cat > /dev/null; exit 2")}, RUNS),
    ("exit code 2 with text on standard output", {PRE: hook("echo out; echo no >&2; exit 2")}, RUNS),
    ("exit code 2 with JSON", {PRE: hook(says(decision="allow") + "; exit 2")}, RUNS),
    ("exit code 1", {PRE: hook("echo broken >&2; exit 1")}, RUNS),
    ("exit code 1 with JSON", {PRE: hook(says(**DENY) + "; exit 1")}, RUNS),
    ("exit code 3", {PRE: hook("echo broken >&2; exit 3")}, RUNS),
    ("a hook that is killed", {PRE: hook("echo no >&2; kill -9 $$")}, RUNS),
    ("a program that is missing", {PRE: hook("no-such-program")}, RUNS),
    ("JSON on standard error", {PRE: hook(says(**DENY) + " >&2")}, RUNS),
    ("JSON in a string", {PRE: hook("cat > /dev/null; echo '" + json.dumps(json.dumps(DENY)) + "'")}, RUNS),
    ("JSON that is a list", {PRE: hook("cat > /dev/null; echo '[]'")}, RUNS),
    ("JSON that is a number", {PRE: hook("cat > /dev/null; echo 5; exit 2")}, RUNS),
    ("plain text before a tool", {PRE: hook("echo hello")}, RUNS),
    ("broken JSON", {PRE: hook("echo '{hello'; exit 2")}, RUNS),
    ("a line before JSON", {PRE: hook("echo log; " + says(**DENY))}, RUNS),
    ("two denials", {PRE: hook(SLOW + "echo first >&2; exit 2", "echo second >&2; exit 2")}, RUNS),
    ("denied and allowed", {PRE: hook(says(**DENY), SLOW + says(decision="allow"))}, RUNS),
    ("denied and asked", {PRE: hook(says(**DENY), SLOW + says(decision="ask", reason="sure?"))}, RUNS),
    ("halted and denied", {PRE: hook(says(**HALT), SLOW + says(**DENY))}, TWO),
    ("timeout", {PRE: hook("exec sleep 5", timeout=500)}, RUNS),
    ("the same hook twice", {PRE: hook(APPENDS, APPENDS)}, RUNS),
    ("the same hook in two entries", {PRE: hook(APPENDS) + hook(APPENDS)}, RUNS),
    ("the same hook under two names",
     {PRE: [{"hooks": [{"type": "command", "command": APPENDS, "name": name} for name in "ab"]}]}, RUNS),
    ("one after the other",
     {PRE: entry("cat > /dev/null; sleep 0.3; echo a >> ran", "cat > /dev/null; echo b >> ran", sequential=True)}, RUNS),
    ("input for the next hook", {PRE: entry(changes("other"), INPUT, sequential=True)}, RUNS),
    ("input for the next hook of a hook that fails", {PRE: entry(changes("other") + "; exit 1", INPUT, sequential=True)}, RUNS),
    ("a denial before the next hook", {PRE: entry(says(**DENY), APPENDS, sequential=True)}, RUNS),
    ("prompt for the next hook", {PROMPT: entry(specific(PROMPT, additionalContext="mind"), PROMPTS, sequential=True)}, [TEXT]),
    ("matcher", {PRE: entry(NO, matcher=TOOL)}, RUNS),
    ("matcher of a part of a name", {PRE: entry(NO, matcher="shell")}, RUNS),
    ("matcher of another tool", {PRE: entry(NO, matcher="^Bash$")}, RUNS),
    ("matcher that is a list", {PRE: entry(NO, matcher="read_file|run_shell_command")}, RUNS),
    ("matcher with spaces", {PRE: entry(NO, matcher=" run_shell_command ")}, RUNS),
    ("matcher that is no pattern", {PRE: entry(NO, matcher="*shell")}, RUNS),
    ("matcher with look-around", {PRE: entry(NO, matcher="^(?!read_).*$")}, RUNS),
    ("an unknown type", {PRE: [{"hooks": [{"type": "prompt", "prompt": "no"}, {"type": "command", "command": NO}]}]}, RUNS),
    ("a name that is disabled beside the events", {PRE: hook(NO, name="guard"), "disabled": ["guard"]}, RUNS),
    ("deny after a byte order mark", {PRE: hook(r"printf '\357\273\277'; " + says(**DENY))}, RUNS),
    ("deny with half of an emoji", {PRE: hook("cat > /dev/null; printf %s '" + r'{"decision": "deny", "reason": "no \ud83d"}' + "'")}, RUNS),
    ("halted, and a hook after it", {PRE: entry(says(**HALT), APPENDS, sequential=True)}, TWO),
    ("block after a tool", {POST: hook(says(decision="block", reason="wrong"))}, RUNS),
    ("exit code 2 after a tool", {POST: hook(NO)}, RUNS),
    ("halt after a tool", {POST: hook(says(**HALT))}, TWO),
    ("context after a tool", {POST: hook(specific(POST, additionalContext="mind <this>"))}, RUNS),
    ("two contexts after a tool",
     {POST: hook(specific(POST, additionalContext="mind"), SLOW + specific(POST, additionalContext="this"))}, RUNS),
    ("context after a failure", {POST: hook(specific(POST, additionalContext="mind"))}, READS),
    ("another tool after a tool",
     {POST: entry(specific(POST, tailToolCallRequest={"name": "list_directory", "args": {"dir_path": "."}}), matcher=TOOL)}, RUNS),
    ("context with a prompt", {PROMPT: hook(specific(PROMPT, additionalContext="mind"))}, [TEXT]),
    ("text with a prompt", {PROMPT: hook("echo mind")}, [TEXT]),
    ("blocked prompt", {PROMPT: hook(says(**DENY))}, [TEXT]),
    ("prompt blocked by exit code", {PROMPT: hook(NO)}, [TEXT]),
    ("halt with a prompt", {PROMPT: hook(says(**HALT))}, [TEXT]),
    ("blocked stop", {STOP: hook(once(says(decision="block", reason="go on")))}, [TEXT, TEXT]),
    ("blocked stop with a new context",
     {STOP: hook(once(says(decision="block", reason="go on", hookSpecificOutput={"hookEventName": STOP, "clearContext": True})))}, [TEXT, TEXT]),
    ("stop blocked by exit code", {STOP: hook(once(NO))}, [TEXT, TEXT]),
    ("halt at a stop", {STOP: hook(says(**HALT))}, [TEXT]),
    ("context at a stop", {STOP: hook(specific(STOP, additionalContext="mind"))}, [TEXT]),
    ("context at the start", {"SessionStart": hook(specific("SessionStart", additionalContext="mind"))}, [TEXT]),
    ("text at the start", {"SessionStart": hook("echo mind")}, [TEXT]),
    ("halt at the start", {"SessionStart": hook(says(**HALT))}, [TEXT]),
    ("block at the start", {"SessionStart": hook(NO)}, [TEXT]),
    ("matcher of a start", {"SessionStart": entry(APPENDS, matcher="startup") + entry("echo other >> ran", matcher="start")}, [TEXT]),
    ("end of the session", {"SessionEnd": hook("cat > /dev/null; echo ended >> ran")}, [TEXT]),
    ("changed request", {ASKS: hook(specific(ASKS, llm_request={"config": {"temperature": 0.25}}))}, [TEXT]),
    ("another model", {ASKS: hook(specific(ASKS, llm_request={"model": "gemini-2.5-pro"}))}, RUNS),
    ("changed messages", {ASKS: hook(specific(ASKS, llm_request={"messages": [{"role": "user", "content": "other"}]}))}, [TEXT]),
    ("an answer in the model's place", {ASKS: hook(says(**DENY, hookSpecificOutput={"hookEventName": ASKS, "llm_response": ANSWER}))}, [TEXT]),
    ("an answer without a denial", {ASKS: hook(specific(ASKS, llm_response=ANSWER))}, [TEXT]),
    ("blocked request", {ASKS: hook(says(**DENY))}, [TEXT]),
    ("halt before a request", {ASKS: hook(says(**HALT))}, [TEXT]),
    ("changed answer of the model", {ANSWERED: hook(specific(ANSWERED, llm_response=ANSWER))}, [TEXT]),
    ("changed answer of two hooks",
     {ANSWERED: hook(specific(ANSWERED, llm_response=ANSWER), SLOW + says(systemMessage="look"))}, [TEXT]),
    ("blocked answer of the model", {ANSWERED: hook(says(**DENY))}, [TEXT]),
    ("halt after an answer", {ANSWERED: hook(says(**HALT))}, [TEXT]),
    ("no tools", {TOOLS: hook(specific(TOOLS, toolConfig={"mode": "NONE"}))}, [TEXT]),
    ("some tools", {TOOLS: hook(specific(TOOLS, toolConfig={"mode": "ANY", "allowedFunctionNames": ["read_file"]}))}, [TEXT]),
    ("tools of two hooks",
     {TOOLS: hook(specific(TOOLS, toolConfig={"mode": "ANY", "allowedFunctionNames": ["read_file"]}),
                  SLOW + specific(TOOLS, toolConfig={"mode": "AUTO", "allowedFunctionNames": ["glob"]}))}, [TEXT]),
    ("no opinion about tools", {TOOLS: hook("cat > /dev/null")}, [TEXT]),
    ("a denial about tools", {TOOLS: hook(says(**DENY))}, [TEXT]),
]

# Those that differ, and why: `docs/dialects.md`.
DIFFERENT = [
    "deny without a reason", "halt without a reason", "a program that is missing", "deny beside a specific output that is a text",
    "deny with half of an emoji",
]

SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "privacy": {"usageStatisticsEnabled": False},
    "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
}
NOT_EVENTS = ["disabled", "enabled"]


def run(hooks, turns, *, through):
    """One session: the exit code, what ran, what the person and the model read."""
    with Session(HOOKYARD) as session:
        def settings(home, written):
            (session.place / home / ".gemini").mkdir(parents=True)
            (session.place / home / ".gemini/settings.json").write_text(json.dumps({**SETTINGS, "hooks": written}))

        if through:
            settings("elsewhere", hooks)
            relay = session.relay("gemini")
            settings("home", {event: hook(relay) for event in hooks if event not in NOT_EVENTS})
        else:
            settings("home", hooks)
        environment = {
            "GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": f"http://127.0.0.1:{session.model(turns)}",
            "GEMINI_CLI_TRUST_WORKSPACE": "true", "GEMINI_CLI_NO_RELAUNCH": "true",
        }
        done = session.agent([AGENT, "-m", "gemini-2.5-flash", "--yolo", "-p", "go"], environment)
        told = [session.plain(line) for line in done.stderr.splitlines() if re.match(r"Error|Agent|Warning: (?!256)|\[WARNING\] (?!Hook)", line)]
        return done.returncode, session.ran(), session.plain(done.stdout), told, [seen(session, request) for request in session.requests()]


def seen(session, request):
    """The settings of a request, and what the model reads from a person, a hook or a tool."""
    found = []
    for part in (part for content in request["contents"] if content["role"] == "user" for part in content["parts"]):
        text = part.get("text") or json.dumps(part.get("functionResponse", {}).get("response"))
        text = re.sub(r"PGID: \d+", "", session.plain(text))
        if not text.startswith("<session_context>"):
            found.append(text)
    model = re.search(r"models/([^:]*)", request["path"])[1]
    return model, request.get("generationConfig", {}).get("temperature"), request.get("toolConfig"), found


compare(CASES, WANTED, run, DIFFERENT)
