"""An agent of the Claude Agent SDK, with a model that only repeats its script. hookyard stops `rm -rf /`.

    HOOKYARD_LISTEN_SOCKET=… python claude_sdk.py
"""

import asyncio
import json
import os
import re
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from claude_agent_sdk import (
    ClaudeAgentOptions, ClaudeSDKClient, PermissionResultAllow, PermissionResultDeny, ResultMessage, SystemMessage, create_sdk_mcp_server,
    tool,
)

from hookyard_client import connect_async
from hookyard_client.adapters.claude_agent_sdk import claude_hooks


async def play(yard, turns, *, prompt="go", more=(), approve=None, place=None, run_tool=lambda command: f"ran {command}"):
    """Lets the model call `bash` with the commands of each turn, or another tool with what is no command. Returns which commands ran,
    what the model was told and asked, and the end. `more` are further prompts of the session."""
    ran = []

    @tool("bash", "Runs a command.", {"command": str})
    async def bash(arguments):
        ran.append(arguments["command"])
        return {"content": [{"type": "text", "text": run_tool(arguments["command"])}]}

    async def can_use_tool(_, given, __):
        if approve is False:
            return PermissionResultDeny(message="a person refused it")
        return PermissionResultAllow(updated_input=given)

    with tempfile.TemporaryDirectory(prefix="hookyard-claude-", ignore_cleanup_errors=True) as home, ScriptedModel(turns) as model:
        quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "CLAUDE_CONFIG_DIR": home}
        hooks = claude_hooks(yard)
        options = ClaudeAgentOptions(
            hooks=hooks,
            can_use_tool=can_use_tool,
            mcp_servers={"host": create_sdk_mcp_server("host", tools=[bash])},
            # Only hooks ask a person about it.
            allowed_tools=["mcp__host__bash"],
            setting_sources=[],
            cwd=(place or {}).get("cwd"),
            env={**quiet, "HOME": home, "ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "none"},
        )
        reason = ended = None
        async with ClaudeSDKClient(options) as client:
            for words in [prompt, *more]:
                await client.query(words)
                async for message in client.receive_response():
                    if isinstance(message, SystemMessage) and message.subtype == "informational":
                        reason = re.sub("^.* says: ", "", message.data["content"])
                    if isinstance(message, ResultMessage):
                        ended = f"halted: {reason}" if message.terminal_reason == "hook_stopped" else message.result
    return {"ran": ran, "told": told(model.requests), "ended": ended, "asked": json.dumps(model.requests)}


class ScriptedModel:
    """A server in place of the Messages API, which keeps what it is asked."""

    def __init__(self, turns):
        self.requests = []
        self.calls = [[_call(command, f"call-{turn}-{number}") for number, command in enumerate(commands)] for turn, commands in enumerate(turns)]

    def __enter__(self):
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_HEAD(self):
                self.send_response(200)
                self.end_headers()

            def do_POST(self):
                asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
                kind, answer = model.answer(asked)
                self.send_response(200)
                self.send_header("content-type", kind)
                self.end_headers()
                self.wfile.write(answer.encode())

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()

    def answer(self, asked):
        if "messages" in asked:
            self.requests.append(asked)
        # The SDK asks for other things, too, such as a summary.
        parts = self.calls.pop(0) if asked.get("tools") and self.calls else [{"type": "text", "text": "done"}]
        stop = {"stop_reason": "end_turn" if parts[0]["type"] == "text" else "tool_use"}
        usage = {"input_tokens": 1, "output_tokens": 1}
        message = {"id": f"msg-{len(self.requests)}", "type": "message", "role": "assistant", "model": "script", "content": [], "usage": usage}
        if not asked.get("stream"):
            return "application/json", json.dumps({**message, "content": parts, **stop})
        events = [("message_start", {"message": {**message, "stop_reason": None}})]
        for index, part in enumerate(parts):
            if part["type"] == "text":
                start, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": part["text"]}
            else:
                start, delta = {**part, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(part["input"])}
            events.append(("content_block_start", {"index": index, "content_block": start}))
            events.append(("content_block_delta", {"index": index, "delta": delta}))
            events.append(("content_block_stop", {"index": index}))
        events += [("message_delta", {"delta": stop, "usage": usage}), ("message_stop", {})]
        return "text/event-stream", "".join(f"event: {kind}\ndata: {json.dumps({'type': kind, **rest})}\n\n" for kind, rest in events)


def _call(command, call):
    what = {"name": "mcp__host__bash", "input": {"command": command}} if isinstance(command, str) else command
    return {"type": "tool_use", "id": call, **what}


def told(requests):
    """The results of tools in the last request, without what the SDK says beside them."""
    messages = requests[-1]["messages"] if requests else []
    parts = [part for message in messages if isinstance(message["content"], list) for part in message["content"]]
    results = [part["content"] for part in parts if part["type"] == "tool_result"]
    texts = ["\n".join(part["text"] for part in content) if isinstance(content, list) else content for content in results]
    return [re.sub(r"<system-reminder>[\s\S]*?</system-reminder>|^PreToolUse:\S+ hook error: ", "", text).strip() for text in texts]


async def main():
    async with connect_async() as yard:
        played = await play(yard, [["rm -rf /"], ["ls"]])
        print("ran:", *played["ran"])
        print("told:", *played["told"], sep="\n  ")


if __name__ == "__main__":
    asyncio.run(main())
