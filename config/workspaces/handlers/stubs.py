"""Stand-ins for what the hooks of this workspace ask: a policy server and two language models.

    python3 stubs.py [--port PORT] [COMMAND ...]

With a command, runs it while the stand-ins are up and ends with its exit code; without one, runs until interrupted.
"""

import argparse
import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def command_in(text):
    """The command of the event between the marks in a question to a model."""
    event = text.split("<event_data>", 1)[1].rsplit("</event_data>", 1)[0]
    return json.loads(event)["tool_input"]["command"]


def policy(envelope, _headers):
    command = envelope["tool_input"]["command"]
    if command.startswith("npm install"):
        return {"systemMessage": "new packages are reviewed on Mondays"}
    return {}


def small_model(question, headers):
    """Chat completions: thinks little of force pushes."""
    assert headers["authorization"] == "Bearer made-up"
    text = "".join(message["content"] for message in question["messages"] if message["role"] == "user")
    verdict = {}
    if "push --force" in command_in(text):
        verdict = {"decision": "block", "reason": "commits of others on the server would be lost"}
    message = {"role": "assistant", "content": json.dumps(verdict)}
    return {
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": len(text) // 4, "completion_tokens": 12, "total_tokens": len(text) // 4 + 12},
    }


def large_model(question, headers):
    """Messages: reads the script that a command runs, then judges it."""
    assert headers["x-api-key"] == "made-up" and headers["anthropic-version"]
    first, *later = question["messages"]
    words = command_in(first["content"]).split()
    scripts = [word for word in words if word.endswith(".sh")]
    if scripts and not later:
        name, content = "read_file", {"path": scripts[0]}
    else:
        name, content = "answer", {}
        if later and "$HOME" in json.dumps(later[-1]):
            content = {"decision": "block", "reason": f"{scripts[0]} removes files outside of build/"}
    return {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "tool_use", "id": f"toolu_{len(later)}", "name": name, "input": content}],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 400, "output_tokens": 20},
    }


ROUTES = {"/policy": policy, "/v1/chat/completions": small_model, "/v1/messages": large_model}


class Stub(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Without this, the second half of an answer waits for the client's acknowledgement of the first.
    disable_nagle_algorithm = True

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        route = ROUTES.get(self.path)
        status, answer = 404, {"error": {"message": f"there is no {self.path}"}}
        if route:
            try:
                status, answer = 200, route(json.loads(body), self.headers)
            except (AssertionError, KeyError, IndexError, ValueError) as error:
                status, answer = 400, {"error": {"message": f"{type(error).__name__}: {error}"}}
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def main():
    parser = argparse.ArgumentParser(description="stand-ins for what the hooks of this workspace ask")
    parser.add_argument("--port", type=int, default=8377)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    try:
        server = ThreadingHTTPServer(("127.0.0.1", arguments.port), Stub)
    except OSError as error:
        sys.exit(f"port {arguments.port} of this machine cannot be used: {error.strerror}; give another with --port")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        if arguments.command:
            try:
                sys.exit(subprocess.run(arguments.command, check=False).returncode)
            except OSError as error:
                sys.exit(f"{arguments.command[0]} cannot be run: {error.strerror}")
        print(f"listening on http://127.0.0.1:{server.server_port}; stop with Ctrl-C", flush=True)
        threading.Event().wait()
    except KeyboardInterrupt:
        pass


main()
