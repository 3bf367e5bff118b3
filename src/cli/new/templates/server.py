#!/usr/bin/env python3
"""{{name}}: the server of this hook. Start it before the agent. Any server that answers in JSON works too."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ADDRESS = ("127.0.0.1", 8377)


def hook(envelope):
    """Gets the event. Returns the answer, or None for no opinion."""
    command = str((envelope.get("tool_input") or {}).get("command", ""))
    # Your rule goes here.
    if "frobnicate --everything" in command:
        return {"decision": "block", "reason": "{{name}}: nobody frobnicates everything here"}
    return None


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        envelope = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps(hook(envelope) or {}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    print("{{name}} listens on http://%s:%d" % ADDRESS, flush=True)
    ThreadingHTTPServer(ADDRESS, Handler).serve_forever()
