#!/usr/bin/env python3
"""Connects real agents as the README does, and looks whether its first guard blocks in each, with the agent's own hooks run
once: by the agent, and with `--adopt` by hookyard. Then a pack of guards has to stop `rm -rf /`. OpenCode gets its plugin instead.
Files are looked at byte for byte: after `disconnect`, all are as they were, also where the settings have unusual bytes.

    tests/agents/connect.py [target/debug/hookyard]

No daemon runs before: the agent's first event starts it. Agents are looked for on the PATH; those that are not installed
are skipped. Ends with 1 if an agent is not as it should be.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from compare import Session

PLUGIN = Path(__file__).resolve().parents[2] / "config/opencode/hookyard.js"
HOOKYARD = shutil.which(os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else "hookyard")
REASON = "my-guard: nobody frobnicates everything here"
PACK_REASON = "deletes a system directory"


def call(name, **given):
    return [[{"type": "tool_use", "id": "call_1", "name": name, "input": given}]]


DONE = [{"type": "text", "text": "done"}]


def own(directory, event):
    """Settings with a hook of the agent itself."""
    hook = {"type": "command", "name": "own", "command": f"cat > {directory}/null; echo {event} >> {directory}/own"}
    return {"hooks": {event: [{"hooks": [{key: hook[key] for key in ("type", "command")}]}]}}


def claude(session, port):
    settings = own(session.place, "PreToolUse")
    command = ["claude", "--dangerously-skip-permissions", "--model", "mock", "-p", "go"]
    environment = {"ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}", "ANTHROPIC_API_KEY": "mock", "IS_SANDBOX": "1",
                   "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    return ".claude/settings.json", settings, command, environment


def gemini(session, port):
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": False},
                "general": {"enableAutoUpdate": False}, **own(session.place, "BeforeTool")}
    command = ["gemini", "-m", "gemini-2.5-flash", "--yolo", "-p", "go"]
    environment = {"GEMINI_API_KEY": "mock", "GOOGLE_GEMINI_BASE_URL": f"http://127.0.0.1:{port}",
                   "GEMINI_CLI_TRUST_WORKSPACE": "true", "GEMINI_CLI_NO_RELAUNCH": "true"}
    return ".gemini/settings.json", settings, command, environment


def codex(session, port):
    config = session.home / ".codex"
    config.mkdir()
    (config / "config.toml").write_bytes(
        ('# Which model: ü 🦉\r\nmodel   = "mock" # by hand\nmodel_provider = "mock"\n\n\n\t# [hooks]\n[model_providers.mock]\n'
         f'name = "mock"\nwire_api = "responses"\nbase_url = "http://127.0.0.1:{port}/v1"\n'
         f'[projects."{session.project}"]\ntrust_level = "trusted" # the end').encode())
    subprocess.run(["git", "init", "-q", str(session.project)], check=True)
    command = ["codex", "exec", "--json", "--dangerously-bypass-hook-trust",
               "--dangerously-bypass-approvals-and-sandbox", "go"]
    return ".codex/hooks.json", own(session.place, "PreToolUse"), command, {}


def qwen(session, port):
    settings = {"security": {"auth": {"selectedType": "openai"}}, **own(session.place, "PreToolUse")}
    command = ["qwen", "--approval-mode", "yolo", "-p", "go"]
    environment = {"OPENAI_API_KEY": "none", "OPENAI_MODEL": "mock", "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1",
                   "QWEN_CODE_NO_RELAUNCH": "true"}
    return ".qwen/settings.json", settings, command, environment


def copilot(session, port):
    trusted = [str(session.project)]
    config = session.home / ".copilot"
    config.mkdir()
    (config / "config.json").write_text(json.dumps({"trusted_folders": trusted, "trustedFolders": trusted}))
    command = ["copilot", "-p", "go", "--allow-all-tools"]
    environment = {"COPILOT_PROVIDER_BASE_URL": f"http://127.0.0.1:{port}/v1", "COPILOT_MODEL": "mock",
                   "COPILOT_PROVIDER_API_KEY": "none", "COPILOT_OFFLINE": "true", "COPILOT_AUTO_UPDATE": "false"}
    return ".copilot/settings.json", own(session.place, "PreToolUse"), command, environment


def codebuddy(session, port):
    config = session.home / ".codebuddy"
    config.mkdir()
    model = {"id": "mock", "name": "mock", "vendor": "mock", "apiKey": "none", "supportsToolCall": True,
             "url": f"http://127.0.0.1:{port}/v1/chat/completions", "maxInputTokens": 200000, "maxOutputTokens": 8000}
    (config / "models.json").write_text(json.dumps({"models": [model], "availableModels": ["mock"]}))
    command = ["codebuddy", "-p", "go", "--model", "mock", "-y"]
    environment = {"CODEBUDDY_API_KEY": "none", "CODEBUDDY_DISABLE_AUTO_MEMORY": "1"}
    return ".codebuddy/settings.json", own(session.place, "PreToolUse"), command, environment


AGENTS = {
    "claude": (claude, call("Bash", command="frobnicate --everything; echo ran >> ran")),
    "gemini": (gemini, call("run_shell_command", command="frobnicate --everything; echo ran >> ran")),
    "qwen": (qwen, call("run_shell_command", command="frobnicate --everything; echo ran >> ran", is_background=False)),
    "copilot": (copilot, call("bash", command="frobnicate --everything; echo ran >> ran", description="run")),
    "codebuddy": (codebuddy, call("Bash", command="frobnicate --everything; echo ran >> ran", description="run")),
    "codex": (codex, call("exec_command", cmd="frobnicate --everything; echo ran >> ran")),
}

# Each with the settings file of a project for this machine, and the first event of its hooks.
PROJECT_FILES = {
    "claude": (".claude/settings.local.json", "PreToolUse"), "gemini": (".gemini/settings.json", "BeforeTool"),
    "qwen": (".qwen/settings.json", "PreToolUse"), "copilot": (".github/copilot/settings.local.json", "PreToolUse"),
    "codebuddy": (".codebuddy/settings.local.json", "PreToolUse"), "codex": (".codex/hooks.json", "PreToolUse"),
}
ENTRY = '[ {"hooks": [ {"type":"command", "command": "echo \\u00fc \\ud83e\\udd89 ü" } ]} ]'
BEYOND_A_DOUBLE = "a number beyond a double"
MARK = "a mark of UTF-8"
# What agents do not read, and Gemini CLI does not start with. JavaScript takes such a number for infinite.
REFUSED = {
    BEYOND_A_DOUBLE: {("codex", "user"), ("codex", "project"), ("copilot", "project")},
    MARK: {("copilot", "project"), *((name, level) for name in ("codebuddy", "codex", "gemini") for level in ("user", "project"))},
}
# Settings in unusual bytes; none: no file.
BYTES = {
    "no file": None,
    "an empty file": b"",
    "blank": b" \n\n",
    "empty": b"{}",
    "empty hooks": b'{"hooks":{}}\n\n\n',
    "tabs, without an end": '{\n\t"hooks": {\n\t\t"EVENT": HOOKS\n\t}\n}',
    "ends of Windows": '{\r\n  "a": 1.50e+2,\r\n  "hooks": {"EVENT": HOOKS}\r\n}\r\n',
    MARK: '\ufeff{"hooks": {"EVENT":HOOKS}, "b": [1,\n 2 ]}\n',
    "one line": '{"z":{"y":"\\u0041"},"hooks":{"EVENT":HOOKS},"a":1e300}',
    BEYOND_A_DOUBLE: '{"a":1e400,"hooks":{"EVENT":HOOKS}}',
}


def hookyard(session, *arguments):
    where = ["--home", str(session.home), "--config", str(session.place / "hookyard.yaml")]
    socket = ["--socket", str(session.place / "hookyard.sock")]
    where = {"connect": where + socket, "disconnect": where + socket, "new": where, "trust": where,
             "add": where}.get(arguments[0], socket)
    done = subprocess.run([HOOKYARD, *arguments, *where], cwd=session.project, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def installed(session, name, turns):
    """Has a model with these turns, the settings of an agent, and those of hookyard in place. Returns the file of
    the settings, these, and the command and environment of a session."""
    file, settings, command, environment = AGENTS[name][0](session, session.model(turns))
    file = session.home / file
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(settings, indent=4))
    (session.place / "hookyard.yaml").write_text(f"workspace_roots: [{session.project}]\n")
    return file, settings, command, environment


def add_guard(session):
    """Makes the first guard of the README. Returns what is wrong."""
    _, said = hookyard(session, "new", "my-guard")
    # On a terminal, `new` asks.
    digest = re.search(r"trust .*--yes (\w+)", said)
    is_trusted = digest is not None and hookyard(session, "trust", "--yes", digest[1])[0] == 0
    return [] if is_trusted else [f"the guard is not trusted: {said}"]


def try_agent(name, adopts):
    """What is wrong with a connected agent."""
    wrong = []
    with Session(HOOKYARD) as session:
        file, settings, command, environment = installed(session, name, AGENTS[name][1])
        before = file.read_bytes()
        beside = {path: path.read_bytes() for path in file.parent.glob("*.toml")}
        wrong += add_guard(session)
        adopt = ["--adopt"] if adopts else []
        code, said = hookyard(session, "connect", name, "--daemon", "on-demand", *adopt)
        print(said)
        if code != 0 or "answered" not in said:
            wrong.append("connect proved nothing")
        connected = file.read_bytes()
        if hookyard(session, "stop")[0] != 0:
            wrong.append("the daemon did not stop")
        log = session.place / "own"
        # The test event may have run it.
        log.unlink(missing_ok=True)
        begun = time.monotonic()
        session.run(command, environment)
        print(f"session   {time.monotonic() - begun:.1f} s")
        runs = log.read_text().split() if log.exists() else []
        seen = json.dumps(session.requests())
        if "ran" in session.ran():
            wrong.append("the tool ran past the guard")
        if REASON not in seen:
            wrong.append("the model was not told why")
        if len(runs) != 1:
            wrong.append(f"the agent's own hook ran {len(runs)} times")
        if hookyard(session, "status")[0] != 0:
            wrong.append("no event has started the daemon")
        now = file.read_bytes()
        if ('"command": "cat > ' in file.read_text()) == adopts:
            wrong.append("the agent's own hook is at the wrong place")
        code, said = hookyard(session, "disconnect", name)
        restored = file.read_bytes()
        if now == connected:
            is_restored = restored == before
        else:
            # The agent has written into its settings, and what it wrote stays.
            print(f"settings  {name} has written into them")
            is_restored = json.loads(restored) == {**json.loads(now), "hooks": settings["hooks"]}
        if code != 0 or not is_restored:
            wrong.append(f"disconnect did not restore the settings: {said}")
        wrong += [f"{path} differs" for path, text in beside.items() if path.read_bytes() != text]
    return wrong


def try_pack(name):
    """What is wrong with a pack of guards in a connected agent. If the guard let the command pass, `rm` itself would refuse it."""
    turns = json.loads(json.dumps(AGENTS[name][1]).replace("frobnicate --everything", "rm -rf /"))
    wrong = []
    with Session(HOOKYARD) as session:
        _, _, command, environment = installed(session, name, turns)
        code, said = hookyard(session, "add", "dangerous-commands")
        if code != 0:
            wrong.append(f"the pack is not there: {said}")
        code, said = hookyard(session, "connect", name, "--daemon", "on-demand")
        if code != 0 or "answered" not in said:
            wrong.append(f"connect proved nothing: {said}")
        session.run(command, environment)
        if "ran" in session.ran():
            wrong.append("the tool ran past the pack")
        if PACK_REASON not in json.dumps(session.requests()):
            wrong.append("the model was not told why")
        if hookyard(session, "stop")[0] != 0:
            wrong.append("no event has started the daemon")
    return wrong


def files(session):
    """The bytes of all files of the user and the project, without the records of hookyard."""
    found = [path for top in (session.home, session.project) for path in top.rglob("*") if path.is_file()]
    return {str(path): path.read_bytes() for path in found if ".local" not in path.parts}


def try_bytes(name):
    """What `connect` and `disconnect` leave otherwise than it was."""
    wrong = []
    project_file, event = PROJECT_FILES[name]
    for what, text in BYTES.items():
        for level, adopts in ((level, adopts) for level in ("user", "project") for adopts in (False, True)):
            if (name, level) in REFUSED.get(what, ()):
                continue
            with Session(HOOKYARD) as session:
                user_file = AGENTS[name][0](session, 0)[0]
                file = session.home / user_file if level == "user" else session.project / project_file
                if text is not None:
                    file.parent.mkdir(parents=True, exist_ok=True)
                    text = text if isinstance(text, bytes) else text.replace("EVENT", event).replace("HOOKS", ENTRY).encode()
                    file.write_bytes(text)
                (session.place / "hookyard.yaml").write_text(f"workspace_roots: [{session.project}]\n")
                before = files(session)
                more = ["--project"] if level == "project" else []
                said = hookyard(session, "connect", name, "--daemon", "manual", *more, *(["--adopt"] if adopts else []))[1]
                if "no proof" not in said or b"hookyard" not in (file.read_bytes() if file.exists() else b""):
                    wrong.append(f"{what}, {level}: not connected: {said}")
                said = hookyard(session, "disconnect", name, *more)[1]
                after = files(session)
                for path in sorted(before.keys() | after.keys()):
                    if before.get(path, "-") != after.get(path, "-"):
                        wrong.append(f"{what}, {level}, {'adopted' if adopts else 'plain'}: {path} differs: {said}")
    return wrong


def try_plugin(command_line, reason, prepare):
    """What is wrong with OpenCode and its plugin, put where `docs/hosts.md` says: without a daemon, with one, and taken away."""
    wrong = []
    call_it = call("bash", command=command_line, description="run")
    with Session(HOOKYARD) as session:
        options = {"baseURL": f"http://127.0.0.1:{session.model([*call_it, DONE] * 3)}/v1", "apiKey": "none"}
        provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"mock": {"name": "mock"}}}
        config = {"model": "mock/mock", "permission": {"bash": "allow"}, "provider": {"mock": provider}}
        (session.project / "opencode.json").write_text(json.dumps(config))
        subprocess.run(["git", "init", "-q", str(session.project)], check=True)
        (session.place / "hookyard.yaml").write_text(f"workspace_roots: [{session.project}]\n")
        wrong += prepare(session)
        plugin = session.home / ".config/opencode/plugins/hookyard.js"
        plugin.parent.mkdir(parents=True)
        shutil.copy(PLUGIN, plugin)
        environment = {"XDG_RUNTIME_DIR": str(session.place), "OPENCODE_DISABLE_MODELS_FETCH": "1",
                       "OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1"}

        def said_of_the_call():
            session.run(["opencode", "run", "go"], environment)
            said = [message["content"] for message in session.requests()[-1]["messages"] if message["role"] == "tool"]
            return json.dumps(said)

        said = said_of_the_call()
        if "ran" in session.ran() or "hookyard has no answer" not in said:
            wrong.append(f"without a daemon, the tool ran, or the model does not know why not: {said}")
        where = ["--home", str(session.home), "--config", str(session.place / "hookyard.yaml")]
        socket = session.place / "hookyard.sock"
        session.start(HOOKYARD, "serve", *where, "--socket", str(socket), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while not session.is_ready(socket):
            if time.monotonic() > deadline:
                return [*wrong, "the daemon does not start"]
            time.sleep(0.05)
        said = said_of_the_call()
        if "ran" in session.ran():
            wrong.append("the tool ran past the guard")
        if reason not in said:
            wrong.append(f"the model was not told why: {said}")
        plugin.unlink()
        said_of_the_call()
        if "rm " not in command_line and "ran" not in session.ran():
            wrong.append("without the plugin, the tool did not run")
    return wrong


def add_pack(session):
    code, said = hookyard(session, "add", "dangerous-commands")
    return [] if code == 0 else [f"the pack is not there: {said}"]


def judge(what, wrong):
    """Prints what is wrong, and returns whether anything is."""
    print(f"{'wrong' if wrong else 'right':9} {what}{''.join(f'{chr(10)}          {text}' for text in wrong)}", flush=True)
    return bool(wrong)


def main():
    if not HOOKYARD:
        sys.exit("skipped: there is no hookyard here")
    failed = False
    for name in AGENTS:
        failed |= judge(f"{name}: the same bytes", try_bytes(name))
        if not shutil.which(name):
            print(f"skipped   {name}: it is not on the PATH")
            continue
        failed |= judge(name, try_agent(name, False))
        failed |= judge(f"{name} --adopt", try_agent(name, True))
        failed |= judge(f"{name} with a pack", try_pack(name))
    if shutil.which("opencode"):
        failed |= judge("opencode", try_plugin("frobnicate --everything; echo ran >> ran", REASON, add_guard))
        failed |= judge("opencode with a pack", try_plugin("rm -rf /; echo ran >> ran", PACK_REASON, add_pack))
    else:
        print("skipped   opencode: it is not on the PATH")
    sys.exit(failed)


main()
