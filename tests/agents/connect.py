#!/usr/bin/env python3
"""Connects real agents as the README does, and looks whether its first guard blocks in each, with the agent's own hooks run
once: by the agent, and with `--adopt` by hookyard. Then a pack of guards has to stop `rm -rf /`.

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

HOOKYARD = shutil.which(os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else "hookyard")
REASON = "my-guard: nobody frobnicates everything here"
PACK_REASON = "deletes a system directory"


def call(name, **given):
    return [[{"type": "tool_use", "id": "call_1", "name": name, "input": given}]]


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
    (config / "config.toml").write_text(
        'model = "mock"\nmodel_provider = "mock"\n[model_providers.mock]\nname = "mock"\nwire_api = "responses"\n'
        f'base_url = "http://127.0.0.1:{port}/v1"\n[projects."{session.project}"]\ntrust_level = "trusted"\n')
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


def try_agent(name, adopts):
    """What is wrong with a connected agent."""
    wrong = []
    with Session(HOOKYARD) as session:
        file, settings, command, environment = installed(session, name, AGENTS[name][1])
        code, said = hookyard(session, "new", "my-guard")
        # On a terminal, `new` asks.
        digest = re.search(r"trust .*--yes (\w+)", said)
        if digest is None or hookyard(session, "trust", "--yes", digest[1])[0] != 0:
            wrong.append(f"the guard is not trusted: {said}")
        adopt = ["--adopt"] if adopts else []
        code, said = hookyard(session, "connect", name, "--daemon", "on-demand", *adopt)
        print(said)
        if code != 0 or "answered" not in said:
            wrong.append("connect proved nothing")
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
        if ('"command": "cat > ' in file.read_text()) == adopts:
            wrong.append("the agent's own hook is at the wrong place")
        code, said = hookyard(session, "disconnect", name)
        # Some agents write into their settings themselves, so not every byte is the same.
        if code != 0 or json.loads(file.read_text())["hooks"] != settings["hooks"]:
            wrong.append(f"disconnect did not restore the settings: {said}")
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


def main():
    if not HOOKYARD:
        sys.exit("skipped: there is no hookyard here")
    failed = False
    for name in AGENTS:
        if not shutil.which(name):
            print(f"skipped   {name}: it is not on the PATH")
            continue
        ways = {"": lambda: try_agent(name, False), " --adopt": lambda: try_agent(name, True),
                " with a pack": lambda: try_pack(name)}
        for way, attempt in ways.items():
            wrong = attempt()
            failed |= bool(wrong)
            how = name + way
            print(f"{'wrong' if wrong else 'right':9} {how}{''.join(f'{chr(10)}          {what}' for what in wrong)}", flush=True)
    sys.exit(failed)


main()
