#!/usr/bin/env python3
"""Runs the Claude Agent SDK with the adapters of `clients`, and looks whether the guard of the conformance suite blocks, and a
changed input is what runs.

    tests/agents/agent_sdk.py [directory with node_modules] [target/debug/hookyard]

Runs the Python adapter if this Python has `claude-agent-sdk`, and the one for Node if the directory has
`@anthropic-ai/claude-agent-sdk`. The model is `model.py`. Says what is not there, and ends with 1 if something comes out otherwise.
"""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from compare import Session

ROOT = Path(__file__).parents[2]
MODULES = Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve() / "node_modules"
HOOKYARD = shutil.which(sys.argv[2] if len(sys.argv) > 2 else "hookyard")

PYTHON = """
import asyncio, sys
from claude_agent_sdk import ClaudeAgentOptions, query
from hookyard_client import connect_async
from hookyard_client.adapters.claude_agent_sdk import claude_hooks

async def main():
    async with connect_async(socket=sys.argv[1]) as yard:
        async for _ in query(prompt="go", options=ClaudeAgentOptions(hooks=claude_hooks(yard), model="claude-sonnet-4-5")):
            pass

asyncio.run(main())
"""

NODE = """
import { query } from "@anthropic-ai/claude-agent-sdk";
import { connect } from "hookyard-client";
import { claudeHooks } from "hookyard-client/adapters/claude-agent-sdk";

const yard = await connect({ socket: process.argv[2] });
for await (const _ of query({ prompt: "go", options: { hooks: claudeHooks(yard), model: "claude-sonnet-4-5" } }));
"""

GUARD = """
name: guard
events: [before_tool_dispatch]
matcher: ^Bash$
capabilities: [rewrite_tool_request]
handler:
  type: rule
  rules:
    - deny: tool.input.command.contains("--force")
      reason: '"no force pushes"'
    - deny: tool.input.command.contains("rm -rf /")
      reason: '"this would remove everything"'
    - allow: "true"
      patch: { tool_input: '{"command": "echo patched"}' }
"""


def results(session, program, daemon_is_there):
    """The results of the three tools, as the model got them, and whether `rm` ran: a program that only says so."""
    rm = session.place / "bin/rm"
    rm.parent.mkdir()
    rm.write_text(f"#!/bin/sh\n: > '{session.place}/removed'\n")
    rm.chmod(0o755)
    calls = [{"type": "tool_use", "id": f"toolu_{number}", "name": "Bash", "input": {"command": command}}
             for number, command in enumerate(("git push --force", "rm -rf /", "echo written"))]
    port = session.model([[call] for call in calls])
    hooks = session.project / ".openharness/hooks"
    hooks.mkdir(parents=True)
    (hooks / "guard.yaml").write_text(GUARD)
    if daemon_is_there:
        session.relay("claude")
    environment = {
        **os.environ, "HOME": str(session.home), "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}", "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "PYTHONPATH": str(ROOT / "clients/python"),
        "PATH": f"{rm.parent}:{os.environ['PATH']}",
    }
    words = [*program, str(session.place / "socket")]
    subprocess.run(words, cwd=session.project, env=environment, check=True, timeout=120, stdout=subprocess.DEVNULL)
    log = session.place / "requests"
    messages = json.loads(log.read_text().splitlines()[-1])["messages"] if log.exists() and log.read_text() else []
    blocks = [block for message in messages for block in message["content"] if isinstance(block, dict)]
    told = [str(block["content"]) for block in blocks if block["type"] == "tool_result"]
    return told, (session.place / "removed").exists()


def judge(name, program):
    with Session(HOOKYARD) as session:
        asked, has_removed = results(session, program(session), True)
    with Session(HOOKYARD) as session:
        down, _ = results(session, program(session), False)
    blocked, removal, patched = [*asked, "", "", ""][:3]
    is_right = "no force pushes" in blocked and "this would remove everything" in removal and not has_removed
    is_right &= "patched" in patched and "written" not in patched and down == []
    print(f"{name}: {'right' if is_right else f'wrong: {asked}, and without a daemon {down}; rm ran: {has_removed}'}")
    return is_right


def node(session):
    modules = session.project / "node_modules"
    modules.symlink_to(MODULES)
    program = session.project / "host.mjs"
    program.write_text(NODE)
    return ["node", str(program)]


def python(session):
    program = session.project / "host.py"
    program.write_text(PYTHON)
    return [sys.executable, str(program)]


if not HOOKYARD:
    sys.exit("there is no hookyard here")
is_right = True
if importlib.util.find_spec("claude_agent_sdk"):
    is_right &= judge("Python", python)
else:
    print("skipped: this Python has no claude-agent-sdk; pip install claude-agent-sdk")
if (MODULES / "@anthropic-ai/claude-agent-sdk").exists() and (MODULES / "hookyard-client").exists():
    is_right &= judge("Node", node)
else:
    print("skipped: npm install @anthropic-ai/claude-agent-sdk ./clients/typescript")
sys.exit(not is_right)
