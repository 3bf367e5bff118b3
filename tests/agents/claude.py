#!/usr/bin/env python3
"""Runs hooks once directly under Claude Code and once through hookyard, and compares what the model sees and what happens.

    tests/agents/claude.py [path/to/claude] [target/debug/hookyard] [part of a case's name]

Ends with 1 if a case comes out otherwise than `DIFFERENT` says, and with 0 where Claude Code is not installed.
"""

import json
import re

from compare import Session, arguments, compare

AGENT, HOOKYARD, WANTED = arguments("npm install @anthropic-ai/claude-code", "claude")
TEXT = {"type": "text", "text": "working"}


def bash(number, command):
    return {"type": "tool_use", "id": f"toolu_{number}", "name": "Bash", "input": {"command": command}}


def hook(command, **more):
    return [{"hooks": [{"type": "command", "command": command, **more}]}]


def says(**answer):
    """A command that prints an answer and reads nothing."""
    return "echo '" + json.dumps(answer) + "'"


def context(event, text):
    return says(hookSpecificOutput={"hookEventName": event, "additionalContext": text})


RUNS = [[bash(1, "echo ran >> ran")]]
HALT = "cat > /dev/null; [ -e halted ] && exit; touch halted; " + says(**{"continue": False, "stopReason": "over"})
DENY = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "no"}
ONCE_CONTEXT = "read -r l; case $l in *active\\\":true*) exit;; esac; " + context("Stop", "look again")
TWO_TURNS = [[bash(1, "echo a >> ran")], [bash(2, "echo b >> ran")]]

PRE = "PreToolUse"


def specific(event=PRE, **words):
    return says(hookSpecificOutput={"hookEventName": event, **words})


def decides(decision, **words):
    return specific(permissionDecision=decision, permissionDecisionReason="because", **words)


DENIES = decides("deny")
UNNAMED = says(hookSpecificOutput={"permissionDecision": "deny", "permissionDecisionReason": "because"})
APPENDS = "echo hook >> ran"
FAILS = "echo broken >&2; exit 1"
BACKGROUND = "echo '" + json.dumps({"async": True}) + "'; sleep 6; touch late; "
LOOKS_FOR_LATE = [[bash(1, "true")], [bash(2, "[ -e late ] || echo early >> ran")]]
SHOWS = "echo $CLAUDECODE ${CLAUDE_CODE_SESSION_ID:+id} $CLAUDE_EFFORT $CLAUDE_CODE_CHILD_SESSION $CLAUDE_CODE_ENTRYPOINT >> ran"
FIELDS = "python3 -c 'import json, sys; print(*sorted(json.load(sys.stdin)))' >> ran"
WRITES = [[{"type": "tool_use", "id": "toolu_1", "name": "Write", "input": {"file_path": "$PROJECT/ran", "content": "written"}}]]
PERMITS = specific("PermissionRequest", decision={"behavior": "allow"})

# What a plugin has.
PLUGIN = {PRE: hook("echo $(basename $CLAUDE_PLUGIN_ROOT) $(basename ${CLAUDE_PLUGIN_DATA}) >> ran; echo no >&2; exit 2")}
TWO_HOOKS = {PRE: hook("echo no >&2; exit 2") + hook(APPENDS)}

# Name, hooks, turns of the model, prompts, arguments, who enables the plugin that has the hooks.
CASES = [
    ("input read by lines", {PRE: hook("while read -r l; do echo no >&2; exit 2; done")}, RUNS),
    ("input read strictly", {PRE: hook("set -e; read -r l; echo no >&2; exit 2")}, RUNS),
    ("fields of the input", {PRE: hook(FIELDS), "PostToolUse": hook(FIELDS), "UserPromptSubmit": hook(FIELDS), "Stop": hook(FIELDS)}, RUNS),
    ("directory of a hook", {PRE: hook("pwd | sed s,.*/,, >> ran; basename $CLAUDE_PROJECT_DIR >> ran")}, RUNS),
    ("variables of the agent", {PRE: hook(SHOWS)}, RUNS),
    ("variables for commands", {"SessionStart": hook("echo 'export FROM_HOOK=set' >> $CLAUDE_ENV_FILE")}, [[bash(1, "echo $FROM_HOOK >> ran")]]),
    ("deny", {PRE: hook(DENIES)}, RUNS),
    ("deny after a byte order mark", {PRE: hook(r"printf '\357\273\277'; " + DENIES)}, RUNS),
    ("deny with context", {PRE: hook(decides("deny", additionalContext="mind"))}, RUNS),
    ("deny in the old words", {PRE: hook(says(decision="block", reason="no"))}, RUNS),
    ("approve in the old words", {PRE: hook(says(decision="approve", reason="yes"))}, RUNS),
    ("ask without a person", {PRE: hook(decides("ask"))}, RUNS),
    ("allow beside a deny", {PRE: hook(decides("allow")) + hook(DENIES)}, RUNS),
    ("deny at exit 1", {PRE: hook(DENIES + "; exit 1")}, RUNS),
    ("allow at exit 2", {PRE: hook(decides("allow") + "; echo no >&2; exit 2")}, RUNS),
    ("deny after a line of text", {PRE: hook("echo log; " + DENIES)}, RUNS),
    ("text that is almost JSON", {PRE: hook("echo '{oops'")}, RUNS),
    ("no opinion", {PRE: hook("true")}, RUNS),
    ("changed input", {PRE: hook(decides("allow", updatedInput={"command": "echo changed >> ran"}))}, RUNS),
    ("changed output", {"PostToolUse": hook(specific("PostToolUse", updatedToolOutput={"stdout": "else", "stderr": "", "interrupted": False, "isImage": False}))}, RUNS),
    ("permission in place of a person", {"PermissionRequest": hook(PERMITS)}, WRITES),
    ("failing hook", {PRE: hook(FAILS)}, RUNS),
    ("failing hook at the prompt", {"UserPromptSubmit": hook(FAILS)}, []),
    ("failing hook after the tool", {"PostToolUse": hook(FAILS)}, RUNS),
    ("failing hook at the end", {"Stop": hook(FAILS)}, []),
    ("failing hook at the start", {"SessionStart": hook(FAILS)}, []),
    ("hook that takes too long", {PRE: hook("sleep 30; echo no >&2; exit 2", timeout=1)}, RUNS),
    ("message to the person", {PRE: hook(says(systemMessage="note"))}, RUNS),
    ("list of tools", {PRE: [{"matcher": "Write|Bash", **hook(DENIES)[0]}]}, RUNS),
    ("pattern of tools", {PRE: [{"matcher": "^Ba", **hook(DENIES)[0]}]}, RUNS),
    ("another tool", {PRE: [{"matcher": "Read", **hook(DENIES)[0]}]}, RUNS),
    ("one command in two entries", {PRE: hook(APPENDS) + hook(APPENDS)}, RUNS),
    ("condition that fits", {PRE: hook("echo no >&2; exit 2", **{"if": "Bash(echo ran *)"})}, RUNS),
    ("condition that does not fit", {PRE: hook("echo no >&2; exit 2", **{"if": "Bash(git push *)"})}, RUNS),
    ("once", {PRE: hook("echo no >&2; exit 2", once=True)}, TWO_TURNS),
    ("in the background by its first line", {PRE: hook(BACKGROUND)}, LOOKS_FOR_LATE),
    ("late denial in the background", {PRE: hook(BACKGROUND + DENIES + "; exit 2")}, LOOKS_FOR_LATE),
    ("in the background by a setting", {PRE: hook("sleep 6; touch late", **{"async": True})}, LOOKS_FOR_LATE),
    ("wake from the background", {PRE: hook("sleep 6; touch late; exit 2", asyncRewake=True)}, LOOKS_FOR_LATE),
    ("decision without the name of its event", {PRE: hook(UNNAMED)}, RUNS),
    ("block after the tool", {"PostToolUse": hook("echo wrong >&2; exit 2")}, RUNS),
    ("block of a failed tool", {"PostToolUseFailure": hook("echo wrong >&2; exit 2")}, [[bash(1, "exit 3")]]),
    ("context after the tool", {"PostToolUse": hook(context("PostToolUse", "mind"))}, RUNS),
    ("context of two hooks", {"PostToolUse": hook(context("PostToolUse", "one")) + hook(context("PostToolUse", "two"))}, RUNS),
    ("context with the prompt", {"UserPromptSubmit": hook(context("UserPromptSubmit", "mind"))}, []),
    ("text with the prompt", {"UserPromptSubmit": hook("echo mind")}, []),
    ("text at the start", {"SessionStart": hook("echo mind")}, []),
    ("blocked prompt", {"UserPromptSubmit": hook("echo no >&2; exit 2")}, []),
    ("halt at the prompt", {"UserPromptSubmit": hook(says(**{"continue": False, "stopReason": "over"}))}, []),
    ("halt before the tool", {PRE: hook(says(**{"continue": False, "stopReason": "over"}))}, RUNS),
    ("context at the end", {"Stop": hook(ONCE_CONTEXT)}, [[TEXT], [TEXT]]),
    ("end of a session", {"SessionEnd": hook(APPENDS)}, []),
    ("stops without work", {"Stop": hook("echo on >&2; exit 2")}, [[TEXT]] * 20),
    ("stops with work", {"Stop": hook("echo on >&2; exit 2"), "PostToolUse": hook("true")},
     [turn for number in range(12) for turn in ([TEXT], [bash(number, "true")])] + [[TEXT]] * 20),
    ("halt and a prompt", {"PostToolUse": hook(HALT), "UserPromptSubmit": hook("true")}, TWO_TURNS, ["one", "two"]),
    ("halt and a prompt without a hook", {"PostToolUse": hook(HALT)}, TWO_TURNS, ["one", "two"]),
    ("compaction", {"PreCompact": hook("echo mind"), "UserPromptSubmit": hook("true")}, [[TEXT]] * 4, ["one", "two", "three", "/compact"]),
    ("compaction without an opinion", {"PreCompact": hook("true"), "UserPromptSubmit": hook("true")}, [[TEXT]] * 4, ["one", "two", "three", "/compact"]),
    ("worktree", {"WorktreeCreate": hook("d=$PWD/../tree; mkdir -p $d; echo made; echo $d")}, [], ["go"], ["--worktree", "x"]),
    ("plugin of the user", PLUGIN, RUNS, ["go"], [], {"user": True}),
    ("plugin of the project", PLUGIN, RUNS, ["go"], [], {"project": True}),
    ("plugin that is disabled", PLUGIN, RUNS, ["go"], [], {"user": False}),
    ("plugin with two hooks", TWO_HOOKS, RUNS, ["go"], [], {"user": True}),
]

# Those that differ, and why: `docs/dialects.md`.
DIFFERENT = [
    "text that is almost JSON", "hook that takes too long", "context of two hooks", "stops without work", "stops with work",
    "decision without the name of its event",
]


def write(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def install(home, hooks):
    """Puts a plugin where the agent has installed it for its user."""
    plugins = home / ".claude/plugins"
    root = plugins / "cache/market/guard/1.0.0"
    market = plugins / "marketplaces/market"
    write(root / "hooks/hooks.json", {"hooks": hooks})
    write(root / ".claude-plugin/plugin.json", {"name": "guard", "version": "1.0.0"})
    source = {"source": "github", "repo": "owner/guard"}
    times = {"installedAt": "2026-01-01T00:00:00.000Z", "lastUpdated": "2026-01-01T00:00:00.000Z"}
    installed = {"scope": "user", "installPath": str(root), "version": "1.0.0", **times}
    write(plugins / "installed_plugins.json", {"version": 2, "plugins": {"guard@market": [installed]}})
    known = {"source": source, "installLocation": str(market), "lastUpdated": times["lastUpdated"]}
    write(plugins / "known_marketplaces.json", {"market": known})
    entry = {"name": "guard", "source": source, "description": "-"}
    catalog = {"name": "market", "owner": {"name": "owner"}, "plugins": [entry]}
    write(market / ".claude-plugin/marketplace.json", catalog)


def run(hooks, turns, prompts=("go",), arguments=(), enabled=None, *, through):
    """One session: the exit code, how its runs ended, what ran, what the model read, and whether the person was told."""
    with Session(HOOKYARD) as session:
        trusted = {"hasCompletedOnboarding": True, "projects": {str(session.project): {"hasTrustDialogAccepted": True}}}
        write(session.home / ".claude.json", trusted)
        own = {"hooks": hooks}
        if enabled is not None:
            # Through hookyard, the agent has a home of its own, so that it runs no hooks of its user.
            home = session.place / ("elsewhere" if through else "home")
            install(home, hooks)
            levels = {level: {"enabledPlugins": {"guard@market": is_on}} for level, is_on in enabled.items()}
            own = levels.get("project", {})
            if "user" in levels:
                write(home / ".claude/settings.json", levels["user"])
        write(session.project / ".claude/settings.json", own)
        entries = []
        if through:
            relay = hook(session.relay("claude"))
            write(session.place / "relay.json", {"hooks": {event: relay for event in hooks}})
            entries = ["--setting-sources", "user", "--settings", str(session.place / "relay.json")]
        turns = json.loads(json.dumps(turns).replace("$PROJECT", str(session.project)))
        environment = {
            "ANTHROPIC_API_KEY": "none", "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{session.model(turns)}",
            "DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }
        message = lambda text: {"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": text}]}}
        done = session.agent(
            [AGENT, "-p", "--allowedTools", "Bash", "--input-format", "stream-json", "--output-format", "stream-json",
             "--verbose", *entries, *arguments],
            environment, "".join(json.dumps(message(prompt)) + "\n" for prompt in prompts))
        results = [json.loads(line) for line in done.stdout.splitlines() if '"type":"result"' in line]
        ends = [(result.get("subtype"), result.get("terminal_reason")) for result in results]
        read = [texts(session, request) for request in session.requests()]
        return done.returncode, ends, session.ran(), read, is_person_told(session)


def is_person_told(session):
    """Whether the record of the session has something that a hook shows to the person."""
    told = ["hook_non_blocking_error", "hook_system_message"]
    records = (session.home / ".claude/projects").glob("*/*.jsonl")
    return any(f'"type":"{kind}"' in path.read_text() for path in records for kind in told)


def texts(session, request):
    """What the last message to the model says, without the wording that names the command of a hook."""
    content = request["messages"][-1]["content"]
    blocks = [{"text": content}] if isinstance(content, str) else content
    found = [block.get("text") or json.dumps(block.get("content")) for block in blocks]
    # What a hook says at a prompt stands among what Claude Code says itself, as a paragraph.
    own = [text for text in found if "skills" in text or "# claudeMd" in text]
    paragraphs = [re.sub(r"^(\w+):\w+ hook ", r"\1 hook ", part) for text in own for part in text.split("\n\n")]
    hooks = [part for part in paragraphs if re.match(r"\w+ hook ", part)]
    return [plain(session, text) for text in [*hooks, *(text for text in found if text not in own)]]


def plain(session, text):
    text = text.replace(str(session.place), "")
    # How a denial by exit code 2 is introduced differs from one by JSON, and names the plugin of the command.
    text = re.sub(r"PreToolUse:Bash hook error: (?:\[.*?\]: )?|\s*This hook comes from the \S+ plugin\.", "", text)
    text = re.sub(r'hook blocking error from command: ".*": |\[[^\]]*\]: ', "", text)
    text = text.replace("hook success: ", "").replace("hook additional context: ", "")
    return session.plain(text).replace(' "', '"')


compare(CASES, WANTED, run, DIFFERENT)
