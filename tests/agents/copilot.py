#!/usr/bin/env python3
"""Runs hooks once directly under Copilot CLI and once through hookyard, and compares what the model sees and what happens.

    tests/agents/copilot.py [path/to/copilot] [target/debug/hookyard] [part of a case's name]

Ends with 1 if a case differs that `docs/dialects.md` does not name, and with 0 where Copilot CLI is not installed.
"""

import json
import re

from compare import Session, arguments, compare, says

AGENT, HOOKYARD, WANTED = arguments("npm install @github/copilot", "copilot")
PRE, ASKED, POST, FAILED, PROMPT = "PreToolUse", "PermissionRequest", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit"
OWN_PRE, OWN_POST, OWN_PROMPT = "preToolUse", "postToolUse", "userPromptSubmitted"
FIRST_NAMES = {OWN_PRE: PRE, OWN_POST: POST, OWN_PROMPT: PROMPT, "agentStop": "Stop", "sessionEnd": "SessionEnd",
               "permissionRequest": ASKED}
TEXT = [{"type": "text", "text": "working"}]
TOOL = "bash"


def call(number, command, name=TOOL, **more):
    given = {"command": command, "description": "run"} if name == TOOL else {}
    return {"type": "tool_use", "id": f"call_{number}", "name": name, "input": {**given, **more}}


def hook(*commands, **more):
    return [{"type": "command", "bash": command, **more} for command in commands]


def entry(*commands, **more):
    return [{**more, "hooks": [{"type": "command", "command": command} for command in commands]}]


def specific(event, **answer):
    return says(hookSpecificOutput={"hookEventName": event, **answer})


def once(command):
    """A command that has a say the first time only."""
    return "cat > /dev/null; [ -e said ] && exit; touch said; " + command


NO = "echo no >&2; exit 2"
RUNS = [[call(1, "echo ran >> ran; cat ran")]]
FAILS = [[call(1, "", name="view", path="nowhere")]]
DENIED = {"permissionDecision": "deny", "permissionDecisionReason": "no"}
DENY = says(**DENIED)
ALLOW = says(permissionDecision="allow")
HALT = says(**{"continue": False, "stopReason": "over"})
CHANGED = {"command": "echo changed >> ran; cat ran", "description": "run"}
FIELDS = "python3 -c 'import json, sys; print(*sorted(json.load(sys.stdin)))' >> ran"
NAME = "python3 -c 'import json, sys; e = json.load(sys.stdin); print(e.get(\"tool_name\"), e.get(\"toolName\"))' >> ran"
SHOWS = 'for d in "$COPILOT_PROJECT_DIR" "$CLAUDE_PROJECT_DIR"; do basename "$d"; done >> ran; echo $COPILOT_CLI >> ran'

# The files that have hooks.
USERS, OWN, HOOKS = ".copilot/hooks/h.json", ".copilot/settings.json", ".github/hooks/h.json"
SHARED, LOCAL = ".github/copilot/settings.json", ".github/copilot/settings.local.json"
WHERE = {"in the user's hooks": USERS, "in the user's settings": OWN, "of the project": SHARED, "of the local settings": LOCAL,
         "in the project's hooks": HOOKS}
# What a file has beside its hooks.
ALTERED = {
    "a byte order mark": lambda text: "\ufeff" + text,
    "comments": lambda text: "// one\n" + text[:-1] + "/* two */ }",
    "a comma behind the last element": lambda text: text[:-1] + ", }",
    "a number beyond a double": lambda text: text[:-1] + ', "a": 1e400 }',
}

# Name, hooks, turns of the model, and the files that have the hooks, after what one has beside them.
CASES = [
    ("no opinion", {PRE: hook("cat > /dev/null")}, RUNS),
    ("fields of the input", {event: hook(FIELDS) for event in (PRE, POST, PROMPT, "Stop")}, RUNS),
    ("fields of the input by the second names", {event: hook(FIELDS) for event in (OWN_PRE, OWN_POST, OWN_PROMPT, "agentStop")}, RUNS),
    ("fields of the start", {"SessionStart": hook(FIELDS), "sessionEnd": hook(FIELDS)}, [TEXT]),
    ("hooks by both names", {PRE: hook(NAME), OWN_PRE: hook(NAME)}, RUNS),
    ("input read by lines", {PRE: hook("while read -r l; do echo no >&2; exit 2; done")}, RUNS),
    ("variables", {PRE: hook(SHOWS)}, RUNS),
    ("variables of a hook", {PRE: hook("echo $OWN >> ran", env={"OWN": "value"})}, RUNS),
    ("directory of a hook", {PRE: hook("basename $PWD >> ../ran", cwd=".github")}, RUNS),
    ("deny", {PRE: hook(DENY)}, RUNS),
    ("deny by the second name", {OWN_PRE: hook(DENY)}, RUNS),
    ("deny in an entry", {PRE: entry(DENY)}, RUNS),
    ("deny without a reason", {PRE: hook(says(permissionDecision="deny"))}, RUNS),
    ("deny in the specific output", {PRE: hook(specific(PRE, **DENIED))}, RUNS),
    ("deny in the specific output by the second name", {OWN_PRE: hook(specific(PRE, **DENIED))}, RUNS),
    ("deny with context", {PRE: hook(says(**DENIED, additionalContext="mind"))}, RUNS),
    ("ask", {PRE: hook(says(permissionDecision="ask", permissionDecisionReason="sure?"))}, RUNS),
    ("allow", {PRE: hook(ALLOW)}, RUNS),
    ("an unknown decision", {PRE: hook(says(permissionDecision="never"))}, RUNS),
    ("block before a tool", {PRE: hook(says(decision="block", reason="no"))}, RUNS),
    ("continue false before a tool", {PRE: hook(HALT)}, RUNS),
    ("changed input", {PRE: hook(says(modifiedArgs=CHANGED))}, RUNS),
    ("changed input by the second name", {OWN_PRE: hook(says(modifiedArgs=CHANGED))}, RUNS),
    ("changed input in a string", {PRE: hook("cat > /dev/null; echo '" + json.dumps({"modifiedArgs": json.dumps(CHANGED)}) + "'")}, RUNS),
    ("changed input with allow", {PRE: hook(specific(PRE, permissionDecision="allow", updatedInput=CHANGED))}, RUNS),
    ("changed input for the next hook", {PRE: hook(says(modifiedArgs=CHANGED), "grep -o changed >> ran")}, RUNS),
    ("context before a tool", {PRE: hook(says(additionalContext="mind"))}, RUNS),
    ("exit code 2", {PRE: hook(NO)}, RUNS),
    ("exit code 2 with JSON", {PRE: hook(DENY + "; exit 2")}, RUNS),
    ("exit code 1", {PRE: hook("echo broken >&2; exit 1")}, RUNS),
    ("exit code 1 with JSON", {PRE: hook(ALLOW + "; exit 1")}, RUNS),
    ("plain text before a tool", {PRE: hook("echo hello")}, RUNS),
    ("broken JSON", {PRE: hook("echo '{hello'")}, RUNS),
    ("a line before JSON", {PRE: hook("echo log; " + DENY)}, RUNS),
    ("progress", {PRE: hook("echo '{\"type\": \"progress\", \"message\": \"half\"}'; " + DENY)}, RUNS),
    ("two denials", {PRE: hook(DENY, "cat > /dev/null; echo second >> ran; exit 2")}, RUNS),
    ("allowed and denied", {PRE: hook(ALLOW, DENY)}, RUNS),
    ("asked and allowed", {PRE: hook(says(permissionDecision="ask"), ALLOW)}, RUNS),
    ("timeout", {PRE: hook("sleep 5; " + NO, timeoutSec=1)}, RUNS),
    ("timeout in an entry", {PRE: [{"hooks": [{"type": "command", "command": "sleep 5; " + NO, "timeout": 1}]}]}, RUNS),
    ("the same hook twice", {PRE: hook("cat > /dev/null; echo hook >> ran", "cat > /dev/null; echo hook >> ran")}, RUNS),
    ("matcher", {PRE: hook(DENY, matcher="Bash")}, RUNS),
    ("matcher of the second name", {PRE: hook(DENY, matcher="bash")}, RUNS),
    ("matcher by the second name", {OWN_PRE: hook(DENY, matcher="bash")}, RUNS),
    ("matcher of the first name by the second", {OWN_PRE: hook(DENY, matcher="Bash")}, RUNS),
    ("matcher of a part of a name", {PRE: hook(DENY, matcher="as")}, RUNS),
    ("matcher that is a pattern", {PRE: hook(DENY, matcher="Ba.*")}, RUNS),
    ("matcher that is a list", {PRE: hook(DENY, matcher="Edit|Bash")}, RUNS),
    ("matcher with a comma", {PRE: hook(DENY, matcher="Edit,Bash")}, RUNS),
    ("matcher that is no pattern", {PRE: hook(DENY, matcher="[")}, RUNS),
    ("a hook without a type", {PRE: [{"bash": DENY}]}, RUNS),
    ("an unknown type", {PRE: [{"type": "nonsense", "bash": NO}, {"type": "command", "bash": "cat > /dev/null"}]}, RUNS),
    ("block after a tool", {POST: hook(says(decision="block", reason="wrong"))}, RUNS),
    ("block after a tool by the second name", {OWN_POST: hook(says(decision="block", reason="wrong"))}, RUNS),
    ("exit code 2 after a tool", {POST: hook(NO)}, RUNS),
    ("continue false after a tool", {POST: hook(HALT)}, RUNS),
    ("changed output", {POST: hook(says(modifiedResult={"resultType": "success", "textResultForLlm": "redacted"}))}, RUNS),
    ("context after a tool", {POST: hook(says(additionalContext="mind"))}, RUNS),
    ("two contexts after a tool", {POST: hook(says(additionalContext="one"), says(additionalContext="two"))}, RUNS),
    ("context in the specific output after a tool", {POST: hook(specific(POST, additionalContext="mind"))}, RUNS),
    ("context after a failure", {FAILED: hook(says(additionalContext="mind"))}, FAILS),
    ("denied permission", {ASKED: hook(says(behavior="deny", message="no"))}, RUNS),
    ("denied permission by the second name", {"permissionRequest": hook(says(behavior="deny", message="no"))}, RUNS),
    ("allowed permission", {ASKED: hook(says(behavior="allow"))}, RUNS),
    ("permission without an opinion", {ASKED: hook("cat > /dev/null")}, RUNS),
    ("permission in the specific output", {ASKED: hook(specific(ASKED, decision={"behavior": "deny"}))}, RUNS),
    ("permission allowed and denied", {ASKED: hook(says(behavior="allow"), says(behavior="deny", message="no"))}, RUNS),
    ("permission denied and allowed", {ASKED: hook(says(behavior="deny", message="no"), says(behavior="allow"))}, RUNS),
    ("permission and exit code 2", {ASKED: hook(NO)}, RUNS),
    ("context with a prompt", {PROMPT: hook(says(additionalContext="mind"))}, [TEXT]),
    ("two contexts with a prompt", {PROMPT: hook(says(additionalContext="one"), says(additionalContext="two"))}, [TEXT]),
    ("blocked prompt", {PROMPT: hook(says(decision="block", reason="no"))}, [TEXT]),
    ("blocked prompt without a reason", {PROMPT: hook(says(decision="block"))}, [TEXT]),
    ("prompt and exit code 2", {PROMPT: hook(NO)}, [TEXT]),
    ("changed prompt", {PROMPT: hook(says(modifiedPrompt="changed"))}, [TEXT]),
    ("changed prompt by the second name", {OWN_PROMPT: hook(says(modifiedPrompt="changed"))}, [TEXT]),
    ("context at the start", {"SessionStart": hook(says(additionalContext="mind"))}, [TEXT]),
    ("blocked stop", {"Stop": hook(once(says(decision="block", reason="go on")))}, [TEXT, TEXT]),
    ("blocked stop by the second name", {"agentStop": hook(once(says(decision="block", reason="go on")))}, [TEXT, TEXT]),
    ("stop and exit code 2", {"Stop": hook(once(NO))}, [TEXT, TEXT]),
    ("continue false at a stop", {"Stop": hook(once(HALT))}, [TEXT, TEXT]),
    ("deny of the project", {PRE: hook(DENY)}, RUNS, SHARED),
    ("deny of the project by the second name", {OWN_PRE: hook(DENY)}, RUNS, SHARED),
    ("deny of the project in an entry", {PRE: entry(DENY, matcher="Bash")}, RUNS, SHARED),
    ("matcher of the project for another tool", {PRE: hook(DENY, matcher="Edit")}, RUNS, SHARED),
    ("timeout of the project", {PRE: hook("sleep 5; " + NO, timeoutSec=1)}, RUNS, SHARED),
    ("changed input of the project", {PRE: hook(says(modifiedArgs=CHANGED))}, RUNS, SHARED),
    ("directory and variables of the project", {PRE: hook("basename $PWD >> ../ran; echo $OWN >> ../ran", cwd=".github", env={"OWN": "value"})}, RUNS, SHARED),
    ("changed output of the project", {POST: hook(says(modifiedResult={"resultType": "success", "textResultForLlm": "redacted"}))}, RUNS, SHARED),
    ("context of the project at the start", {"SessionStart": hook(says(additionalContext="mind"))}, [TEXT], SHARED),
    ("blocked prompt of the project", {PROMPT: hook(says(decision="block", reason="no"))}, [TEXT], SHARED),
    ("blocked stop of the project", {"Stop": hook(once(says(decision="block", reason="go on")))}, [TEXT, TEXT], SHARED),
    ("denied permission of the project", {ASKED: hook(says(behavior="deny", message="no"))}, RUNS, SHARED),
    ("deny of the local settings", {PRE: hook(DENY)}, RUNS, LOCAL),
    ("deny of the project's hooks", {PRE: hook(DENY)}, RUNS, HOOKS),
    ("deny of the user's settings", {PRE: hook(DENY)}, RUNS, OWN),
    ("all levels", {PRE: hook("cat > /dev/null; echo $FILE >> ran")}, RUNS, USERS, OWN, SHARED, LOCAL, HOOKS),
    *((f"{what} {where}", {PRE: hook(DENY)}, RUNS, what, place) for what in ALTERED for where, place in WHERE.items()),
    *((f"disabled {where}", {PRE: hook(DENY)}, RUNS, "disabled", place) for where, place in WHERE.items()),
]

# Those that differ, and why: `docs/dialects.md`.
DIFFERENT = [
    "hooks by both names",
    "exit code 2", "exit code 1", "exit code 1 with JSON", "permission and exit code 2",
    "permission denied and allowed", "blocked prompt without a reason", "two contexts with a prompt",
    "matcher of the first name by the second",
    *(f"{what} {where}" for what in ALTERED for where in ("in the user's hooks", "in the project's hooks")),
    "a byte order mark of the project", "a byte order mark of the local settings",
]


def run(hooks, turns, *files, through):
    """One session: the exit code, what ran, and what the model read."""
    with Session(HOOKYARD) as session:
        def settings(home, name, written, altered=str, **more):
            file = (session.project if ".github" in name else session.place / home) / name
            file.parent.mkdir(parents=True, exist_ok=True)
            written = json.loads(json.dumps(written).replace("$FILE", name))
            file.write_text(altered(json.dumps({"version": 1, **more, "hooks": written})))
            return file

        (session.project / ".github").mkdir()
        what = files[0] if files and "/" not in files[0] else None
        more = {"disableAllHooks": True} if what == "disabled" else {}
        names = [name for name in files if name != what] or [USERS]
        given = [settings("elsewhere" if through else "home", name, hooks, ALTERED.get(what, str), **more) for name in names]
        if through:
            relay = session.relay("copilot", "watch=false")
            # Copilot does not run them itself.
            for file in given:
                file.unlink()
            events = {FIRST_NAMES.get(event, event) for event in hooks}
            settings("home", USERS, {name: hook(relay, timeoutSec=60) for name in sorted(events)})
        (session.home / ".copilot").mkdir(exist_ok=True)
        trusted = [str(session.project)]
        config = session.home / ".copilot/config.json"
        config.write_text(json.dumps({"trusted_folders": trusted, "trustedFolders": trusted}))
        asks = ASKED in hooks and any("allow" in str(entry) or "dev/null" in str(entry) for entry in hooks[ASKED])
        environment = {
            "COPILOT_PROVIDER_BASE_URL": f"http://127.0.0.1:{session.model(turns)}/v1", "COPILOT_MODEL": "mock",
            "COPILOT_PROVIDER_API_KEY": "none", "COPILOT_OFFLINE": "true", "COPILOT_AUTO_UPDATE": "false",
        }
        code = session.run([AGENT, "-p", "go", *([] if asks else ["--allow-all-tools"])], environment)
        return code, session.ran(), [texts(session, request) for request in session.requests()]


def texts(session, request):
    """What the model reads from a person, a hook or a tool."""
    found = []
    for message in request["messages"]:
        content = message["content"] if message["role"] in ("user", "tool") else None
        parts = [content] if isinstance(content, str) else [part.get("text", "") for part in content or []]
        text = " ".join(session.plain(part) for part in parts)
        found.append(re.sub(r"<current_datetime>.*?</current_datetime>|copilot\.(user|project|local)\.\S+", "", text))
    return found


compare(CASES, WANTED, run, DIFFERENT)
