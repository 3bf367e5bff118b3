#!/usr/bin/env python3
"""Runs hooks once directly under Claude Code and once through hookyard, and compares what the model sees and what happens.

    tests/agents/claude.py path/to/claude target/debug/hookyard [part of a case's name]

The model is `model.py`, so nothing is asked over the network. Ends with 1 if a case differs.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

AGENT, HOOKYARD = (str(Path(path).resolve()) for path in sys.argv[1:3])
WANTED = sys.argv[3] if len(sys.argv) > 3 else ""
TEXT = {"type": "text", "text": "working"}


def bash(number, command):
    return {"type": "tool_use", "id": f"toolu_{number}", "name": "Bash", "input": {"command": command}}


def hook(command, **more):
    return [{"hooks": [{"type": "command", "command": command, **more}]}]


def says(**answer):
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

# Name, hooks, turns of the model, prompts, arguments.
CASES = [
    ("input read by lines", {PRE: hook("while read -r l; do echo no >&2; exit 2; done")}, RUNS, ["go"], []),
    ("input read strictly", {PRE: hook("set -e; read -r l; echo no >&2; exit 2")}, RUNS, ["go"], []),
    ("fields of the input", {PRE: hook(FIELDS), "PostToolUse": hook(FIELDS), "UserPromptSubmit": hook(FIELDS), "Stop": hook(FIELDS)}, RUNS, ["go"], []),
    ("directory of a hook", {PRE: hook("pwd | sed s,.*/,, >> ran; basename $CLAUDE_PROJECT_DIR >> ran")}, RUNS, ["go"], []),
    ("variables of the agent", {PRE: hook(SHOWS)}, RUNS, ["go"], []),
    ("variables for commands", {"SessionStart": hook("echo 'export FROM_HOOK=set' >> $CLAUDE_ENV_FILE")}, [[bash(1, "echo $FROM_HOOK >> ran")]], ["go"], []),
    ("deny", {PRE: hook(DENIES)}, RUNS, ["go"], []),
    ("deny after a byte order mark", {PRE: hook(r"printf '\357\273\277'; " + DENIES)}, RUNS, ["go"], []),
    ("deny with context", {PRE: hook(decides("deny", additionalContext="mind"))}, RUNS, ["go"], []),
    ("deny in the old words", {PRE: hook(says(decision="block", reason="no"))}, RUNS, ["go"], []),
    ("approve in the old words", {PRE: hook(says(decision="approve", reason="yes"))}, RUNS, ["go"], []),
    ("ask without a person", {PRE: hook(decides("ask"))}, RUNS, ["go"], []),
    ("allow beside a deny", {PRE: hook(decides("allow")) + hook(DENIES)}, RUNS, ["go"], []),
    ("deny at exit 1", {PRE: hook(DENIES + "; exit 1")}, RUNS, ["go"], []),
    ("allow at exit 2", {PRE: hook(decides("allow") + "; echo no >&2; exit 2")}, RUNS, ["go"], []),
    ("deny after a line of text", {PRE: hook("echo log; " + DENIES)}, RUNS, ["go"], []),
    ("text that is almost JSON", {PRE: hook("echo '{oops'")}, RUNS, ["go"], []),
    ("no opinion", {PRE: hook("true")}, RUNS, ["go"], []),
    ("changed input", {PRE: hook(decides("allow", updatedInput={"command": "echo changed >> ran"}))}, RUNS, ["go"], []),
    ("changed output", {"PostToolUse": hook(specific("PostToolUse", updatedToolOutput={"stdout": "else", "stderr": "", "interrupted": False, "isImage": False}))}, RUNS, ["go"], []),
    ("permission in place of a person", {"PermissionRequest": hook(PERMITS)}, WRITES, ["go"], []),
    ("failing hook", {PRE: hook(FAILS)}, RUNS, ["go"], []),
    ("failing hook at the prompt", {"UserPromptSubmit": hook(FAILS)}, [], ["go"], []),
    ("failing hook after the tool", {"PostToolUse": hook(FAILS)}, RUNS, ["go"], []),
    ("failing hook at the end", {"Stop": hook(FAILS)}, [], ["go"], []),
    ("failing hook at the start", {"SessionStart": hook(FAILS)}, [], ["go"], []),
    ("hook that takes too long", {PRE: hook("sleep 30; echo no >&2; exit 2", timeout=1)}, RUNS, ["go"], []),
    ("message to the person", {PRE: hook(says(systemMessage="note"))}, RUNS, ["go"], []),
    ("list of tools", {PRE: [{"matcher": "Write|Bash", **hook(DENIES)[0]}]}, RUNS, ["go"], []),
    ("pattern of tools", {PRE: [{"matcher": "^Ba", **hook(DENIES)[0]}]}, RUNS, ["go"], []),
    ("another tool", {PRE: [{"matcher": "Read", **hook(DENIES)[0]}]}, RUNS, ["go"], []),
    ("one command in two entries", {PRE: hook(APPENDS) + hook(APPENDS)}, RUNS, ["go"], []),
    ("condition that fits", {PRE: hook("echo no >&2; exit 2", **{"if": "Bash(echo ran *)"})}, RUNS, ["go"], []),
    ("condition that does not fit", {PRE: hook("echo no >&2; exit 2", **{"if": "Bash(git push *)"})}, RUNS, ["go"], []),
    ("once", {PRE: hook("echo no >&2; exit 2", once=True)}, TWO_TURNS, ["go"], []),
    ("in the background by its first line", {PRE: hook(BACKGROUND)}, LOOKS_FOR_LATE, ["go"], []),
    ("late denial in the background", {PRE: hook(BACKGROUND + DENIES + "; exit 2")}, LOOKS_FOR_LATE, ["go"], []),
    ("in the background by a setting", {PRE: hook("sleep 6; touch late", **{"async": True})}, LOOKS_FOR_LATE, ["go"], []),
    ("wake from the background", {PRE: hook("sleep 6; touch late; exit 2", asyncRewake=True)}, LOOKS_FOR_LATE, ["go"], []),
    ("decision without the name of its event", {PRE: hook(UNNAMED)}, RUNS, ["go"], []),
    ("block after the tool", {"PostToolUse": hook("echo wrong >&2; exit 2")}, RUNS, ["go"], []),
    ("block of a failed tool", {"PostToolUseFailure": hook("echo wrong >&2; exit 2")}, [[bash(1, "exit 3")]], ["go"], []),
    ("context after the tool", {"PostToolUse": hook(context("PostToolUse", "mind"))}, RUNS, ["go"], []),
    ("context of two hooks", {"PostToolUse": hook(context("PostToolUse", "one")) + hook(context("PostToolUse", "two"))}, RUNS, ["go"], []),
    ("context with the prompt", {"UserPromptSubmit": hook(context("UserPromptSubmit", "mind"))}, [], ["go"], []),
    ("text with the prompt", {"UserPromptSubmit": hook("echo mind")}, [], ["go"], []),
    ("text at the start", {"SessionStart": hook("echo mind")}, [], ["go"], []),
    ("blocked prompt", {"UserPromptSubmit": hook("echo no >&2; exit 2")}, [], ["go"], []),
    ("halt at the prompt", {"UserPromptSubmit": hook(says(**{"continue": False, "stopReason": "over"}))}, [], ["go"], []),
    ("halt before the tool", {PRE: hook(says(**{"continue": False, "stopReason": "over"}))}, RUNS, ["go"], []),
    ("context at the end", {"Stop": hook(ONCE_CONTEXT)}, [[TEXT], [TEXT]], ["go"], []),
    ("end of a session", {"SessionEnd": hook(APPENDS)}, [], ["go"], []),
    ("stops without work", {"Stop": hook("echo on >&2; exit 2")}, [[TEXT]] * 20, ["go"], []),
    ("stops with work", {"Stop": hook("echo on >&2; exit 2"), "PostToolUse": hook("true")},
     [turn for number in range(12) for turn in ([TEXT], [bash(number, "true")])] + [[TEXT]] * 20, ["go"], []),
    ("halt and a prompt", {"PostToolUse": hook(HALT), "UserPromptSubmit": hook("true")}, TWO_TURNS, ["one", "two"], []),
    ("halt and a prompt without a hook", {"PostToolUse": hook(HALT)}, TWO_TURNS, ["one", "two"], []),
    ("compaction", {"PreCompact": hook("echo mind"), "UserPromptSubmit": hook("true")}, [[TEXT]] * 4, ["one", "two", "three", "/compact"], []),
    ("compaction without an opinion", {"PreCompact": hook("true"), "UserPromptSubmit": hook("true")}, [[TEXT]] * 4, ["one", "two", "three", "/compact"], []),
    ("worktree", {"WorktreeCreate": hook("d=$PWD/../tree; mkdir -p $d; echo made; echo $d")}, [], ["go"], ["--worktree", "x"]),
]

# What `docs/dialects.md` says of these, which come to something else.
KNOWN = {
    "text that is almost JSON", "hook that takes too long", "context of two hooks", "stops without work", "stops with work",
    "decision without the name of its event",
}

# What a plugin has, who enables it, and the same as above.
PLUGIN = {PRE: hook("echo $(basename $CLAUDE_PLUGIN_ROOT) $(basename ${CLAUDE_PLUGIN_DATA}) >> ran; echo no >&2; exit 2")}
PLUGINS = [
    ("plugin of the user", PLUGIN, {"user": True}, RUNS),
    ("plugin of the project", PLUGIN, {"project": True}, RUNS),
    ("plugin that is disabled", PLUGIN, {"user": False}, RUNS),
    ("plugin with two hooks", {PRE: hook("echo no >&2; exit 2") + hook(APPENDS)}, {"user": True}, RUNS),
]


class Run:
    """One session of the agent in a directory of its own, with a home of its own."""

    def __init__(self, hooks, turns, prompts, arguments, through, enabled=None):
        self.place = Path(tempfile.mkdtemp(prefix="agents-"))
        self.project = self.place / "project"
        # Through hookyard, the agent has a home of its own, so that it runs no hooks of its user.
        self.home = self.place / ("agent" if through else "home")
        trusted = {"hasCompletedOnboarding": True, "projects": {str(self.project): {"hasTrustDialogAccepted": True}}}
        self.write(self.home / ".claude.json", trusted)
        own = {} if enabled else {"hooks": hooks}
        if enabled:
            self.install(hooks)
            own = {"enabledPlugins": {"guard@market": enabled["project"]}} if "project" in enabled else {}
            if "user" in enabled:
                self.write(self.place / "home/.claude/settings.json", {"enabledPlugins": {"guard@market": enabled["user"]}})
        self.write(self.project / ".claude/settings.json", own)
        (self.place / "turns.json").write_text(json.dumps(turns).replace("$PROJECT", str(self.project)))
        self.processes = []
        try:
            self.result = self.session(hooks, prompts, arguments, through)
        finally:
            for process in reversed(self.processes):
                process.terminate()
                process.wait()
            shutil.rmtree(self.place, ignore_errors=True)

    def write(self, path, value):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))

    def install(self, hooks):
        """Puts a plugin where the agent has installed it for its user."""
        plugins = self.place / "home/.claude/plugins"
        root = plugins / "cache/market/guard/1.0.0"
        market = plugins / "marketplaces/market"
        self.write(root / "hooks/hooks.json", {"hooks": hooks})
        self.write(root / ".claude-plugin/plugin.json", {"name": "guard", "version": "1.0.0"})
        source = {"source": "github", "repo": "owner/guard"}
        times = {"installedAt": "2026-01-01T00:00:00.000Z", "lastUpdated": "2026-01-01T00:00:00.000Z"}
        installed = {"scope": "user", "installPath": str(root), "version": "1.0.0", **times}
        self.write(plugins / "installed_plugins.json", {"version": 2, "plugins": {"guard@market": [installed]}})
        known = {"source": source, "installLocation": str(market), "lastUpdated": times["lastUpdated"]}
        self.write(plugins / "known_marketplaces.json", {"market": known})
        entry = {"name": "guard", "source": source, "description": "-"}
        catalog = {"name": "market", "owner": {"name": "owner"}, "plugins": [entry]}
        self.write(market / ".claude-plugin/marketplace.json", catalog)

    def start(self, *command, **more):
        process = subprocess.Popen(command, **more)
        self.processes.append(process)
        return process

    def relay(self, hooks):
        """Has hookyard run the project's hooks, and the agent relay its events to it."""
        socket = self.place / "socket"
        environment = {"PATH": os.environ["PATH"], "HOOKYARD_TEST_HOME": str(self.place / "home")}
        settings = [part for setting in ("trust=off", "data=null") for part in ("--set", setting)]
        self.start(HOOKYARD, "serve", "--workspace", str(self.project), "--socket", str(socket), *settings,
                   env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while subprocess.run([HOOKYARD, "status", "--socket", str(socket)], capture_output=True).returncode != 0:
            assert time.monotonic() < deadline, "the daemon does not start"
            time.sleep(0.05)
        entry = hook(f"{HOOKYARD} relay --dialect claude --socket {socket} --if-down block")
        (self.place / "relay.json").write_text(json.dumps({"hooks": {event: entry for event in hooks}}))
        return ["--setting-sources", "user", "--settings", str(self.place / "relay.json")]

    def session(self, hooks, prompts, arguments, through):
        requests = self.place / "requests"
        model = self.start(sys.executable, str(Path(__file__).with_name("model.py")), str(self.place / "turns.json"),
                           str(requests), stdout=subprocess.PIPE, text=True)
        port = model.stdout.readline().strip()
        environment = {
            "PATH": os.environ["PATH"], "HOME": str(self.home), "ANTHROPIC_API_KEY": "none",
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}", "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }
        entries = self.relay(hooks) if through else []
        message = lambda text: {"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": text}]}}
        done = subprocess.run(
            [AGENT, "-p", "--allowedTools", "Bash", "--input-format", "stream-json", "--output-format", "stream-json",
             "--verbose", *entries, *arguments],
            input="".join(json.dumps(message(prompt)) + "\n" for prompt in prompts),
            cwd=self.project, env=environment, capture_output=True, text=True, timeout=240)
        results = [json.loads(line) for line in done.stdout.splitlines() if '"type":"result"' in line]
        ends = [(result.get("subtype"), result.get("terminal_reason")) for result in results]
        ran = self.project / "ran"
        seen = [self.texts(json.loads(line)) for line in requests.read_text().splitlines()] if requests.exists() else []
        return done.returncode, ends, ran.read_text().split() if ran.exists() else [], seen, self.is_person_told()

    def is_person_told(self):
        """Whether the record of the session has something that a hook shows to the person."""
        told = ["hook_non_blocking_error", "hook_system_message"]
        records = (self.home / ".claude/projects").glob("*/*.jsonl")
        return any(f'"type":"{kind}"' in path.read_text() for path in records for kind in told)

    def texts(self, request):
        """What the last message to the model says, without the wording that names the command of a hook."""
        content = request["messages"][-1]["content"]
        blocks = [{"text": content}] if isinstance(content, str) else content
        texts = [block.get("text") or json.dumps(block.get("content")) for block in blocks]
        return [self.plain(text) for text in texts if "skills" not in text and "# claudeMd" not in text]

    def plain(self, text):
        text = text.replace(str(self.place), "")
        text = re.sub(r'PreToolUse:Bash hook error: \[.*?\]: |hook blocking error from command: ".*": |\[[^\]]*\]: ', "", text)
        text = text.replace("hook success: ", "").replace("hook additional context: ", "")
        return re.sub(r"(\\n|\s)+", " ", text).replace(' "', '"').strip()


def compare(name, *session, **more):
    """Whether a case comes to the same directly and through hookyard, or is known not to."""
    direct = Run(*session, through=False, **more).result
    relayed = Run(*session, through=True, **more).result
    is_same, is_known = direct == relayed, name in KNOWN
    print("same     " if is_same else "known    " if is_known else "different", name, flush=True)
    if not is_same and not is_known:
        print(f"  directly         {direct}\n  through hookyard {relayed}", flush=True)
    return is_same or is_known


all_cases = [(name, session, {}) for name, *session in CASES]
all_cases += [(name, (hooks, turns, ["go"], []), {"enabled": enabled}) for name, hooks, enabled, turns in PLUGINS]
results = [compare(name, *session, **more) for name, session, more in all_cases if WANTED in name]
print(f"{sum(results)} of {len(results)} cases are the same, or differ as the documents say")
sys.exit(not all(results))
