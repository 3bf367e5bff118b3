"""A model API for agents under test: each request with tools gets the next scripted turn, a list of content blocks.

It writes each of these requests to a file, with its path as `path` and the time at which it came as `at`, in seconds. It answers in
the format that the path asks for: Anthropic's messages, OpenAI's responses or chat completions, or Gemini's content. It thinks for as
many seconds as a third argument says.
"""

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

with open(sys.argv[1]) as script:
    TURNS = json.load(script)
LOG = open(sys.argv[2], "a")
THINKS = float(sys.argv[3]) if len(sys.argv) > 3 else 0
DONE = [{"type": "text", "text": "done"}]


def events(number, model, blocks):
    """The events of a streamed message."""
    stop = "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"
    usage = {"input_tokens": 1, "output_tokens": 1}
    yield "message_start", {
        "message": {
            "id": f"msg_{number}", "type": "message", "role": "assistant", "model": model, "content": [],
            "stop_reason": None, "stop_sequence": None, "usage": usage,
        }
    }
    for index, block in enumerate(blocks):
        if block["type"] == "text":
            empty, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield "content_block_start", {"index": index, "content_block": empty}
        yield "content_block_delta", {"index": index, "delta": delta}
        yield "content_block_stop", {"index": index}
    yield "message_delta", {"delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage}
    yield "message_stop", {}


def responses(number, model, blocks):
    """The events of a streamed answer of OpenAI's responses API."""
    answer = {"id": f"resp_{number}", "object": "response", "model": model, "output": []}
    yield "response.created", {"response": {**answer, "status": "in_progress"}}
    for index, block in enumerate(blocks):
        if block["type"] == "text":
            content = [{"type": "output_text", "text": block["text"], "annotations": []}]
            item = {"type": "message", "id": f"msg_{number}_{index}", "role": "assistant", "status": "completed", "content": content}
        elif isinstance(block["input"], str):
            item = {"type": "custom_tool_call", "call_id": block["id"], "name": block["name"], "input": block["input"]}
        else:
            item = {"type": "function_call", "call_id": block["id"], "name": block["name"], "arguments": json.dumps(block["input"])}
        answer["output"].append(item)
        yield "response.output_item.added", {"output_index": index, "item": item}
        yield "response.output_item.done", {"output_index": index, "item": item}
    usage = {"input_tokens": 1, "input_tokens_details": None, "output_tokens": 1, "output_tokens_details": None, "total_tokens": 2}
    yield "response.completed", {"response": {**answer, "status": "completed", "usage": usage}}


def completion(number, model, blocks):
    """The chunks of a streamed answer of OpenAI's chat completions API."""
    calls = [
        {"index": index, "id": block["id"], "type": "function",
         "function": {"name": block["name"], "arguments": json.dumps(block["input"])}}
        for index, block in enumerate(block for block in blocks if block["type"] == "tool_use")
    ]
    text = "".join(block["text"] for block in blocks if block["type"] == "text")
    chunk = {"id": f"chatcmpl-{number}", "object": "chat.completion.chunk", "created": 1, "model": model}
    delta = {"role": "assistant", "content": text or None, **({"tool_calls": calls} if calls else {})}
    yield {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"}]}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    yield {**chunk, "choices": [], "usage": usage}


def content(blocks):
    """An answer of Gemini's API."""
    parts = [
        {"text": block["text"]} if block["type"] == "text"
        else {"functionCall": {"id": block["id"], "name": block["name"], "args": block["input"]}}
        for block in blocks
    ]
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    candidate = {"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
    return {"candidates": [candidate], "usageMetadata": usage}


def stream(path, number, model, blocks):
    """The body of an answer, as server-sent events."""
    if path.endswith(":streamGenerateContent"):
        return f"data: {json.dumps(content(blocks))}\n\n"
    if path.endswith("/chat/completions"):
        parts = [f"data: {json.dumps(chunk)}\n\n" for chunk in completion(number, model, blocks)]
        return "".join(parts) + "data: [DONE]\n\n"
    parts = responses if path.endswith("/responses") else events
    return "".join(
        f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n" for name, data in parts(number, model, blocks)
    )


class Model(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    turn = 0

    def log_message(self, *_):
        pass

    def reply(self, body, kind="application/json"):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.reply(b'{"object": "list", "data": [], "models": []}')

    def do_POST(self):
        arrived = time.monotonic()
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        path = self.path.split("?")[0]
        if path.endswith(":generateContent"):
            return self.reply(json.dumps(content(DONE)).encode())
        if not path.endswith(("/messages", "/responses", "/chat/completions", ":streamGenerateContent")):
            return self.reply(b'{"input_tokens": 1}')
        request = json.loads(body)
        blocks = DONE
        if request.get("tools"):
            LOG.write(json.dumps({**request, "path": path, "at": arrived}) + "\n")
            LOG.flush()
            blocks = TURNS[Model.turn] if Model.turn < len(TURNS) else DONE
            Model.turn += 1
            time.sleep(max(0, arrived + THINKS - time.monotonic()))
        body = stream(path, Model.turn, request.get("model"), blocks)
        return self.reply(body.encode(), "text/event-stream")


server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
print(server.server_address[1], flush=True)
server.serve_forever()
