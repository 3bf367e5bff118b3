#!/usr/bin/env python3
"""A daemon that does what `faults.json` says: `stub.py DIR` listens on `DIR/NUMBER.lines` and `DIR/NUMBER.http` for each case.

It says `ready`, and ends with its standard input. Each request of a case gets the next of its answers; one request too
many gets the verdict `halt`.
"""

import asyncio
import json
import sys
from pathlib import Path

CASES = json.loads((Path(__file__).parent / "faults.json").read_text())
TOO_MANY = {"answer": {"verdict": "halt", "reason": "one request too many"}}


def outcome_of(answer, event):
    """An outcome as text: its `patched` may be no JSON that Python would write."""
    parts = {"decision_id": "stub-1", "event": event.get("event"), "verdict": "proceed", "suppress_output": False,
             "hooks": [], "snapshot_version": 1, **answer.get("answer", {})}
    if answer.get("echo"):
        parts["patched"] = {"tool_input": event["tool_input"]}
    text = json.dumps({name: value for name, value in parts.items() if value != "absent"}, ensure_ascii=False)
    if "patched_json" in answer:
        text = f'{text[:-1]}, "patched": {{"tool_input": {answer["patched_json"]}}}}}'
    return text


class Lines:
    @staticmethod
    async def read(reader):
        line = await reader.readline()
        if not line.endswith(b"\n"):
            return None
        read = json.loads(line)
        return read if "cancel" in read else (read["event"], read["id"])

    @staticmethod
    def write(answer, event, number):
        if "error" in answer:
            error = {**answer["error"], **{key: answer[key] for key in ("status", "retry_after") if key in answer}}
            return json.dumps({"id": number, "error": error}) + "\n"
        return f'{{"id":{number},"outcome":{outcome_of(answer, event)}}}\n'


class Http:
    @staticmethod
    async def read(reader):
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        event = json.loads(await reader.readexactly(int(length.split(b":")[1])))
        fields = [line.decode().partition(": ") for line in head.split(b"\r\n")[1:]]
        return event, {name.lower(): value for name, _, value in fields}

    @staticmethod
    def write(answer, event, _):
        body = json.dumps({"error": answer["error"]}) if "error" in answer else outcome_of(answer, event)
        after = f"retry-after: {answer['retry_after']}\r\n" if "retry_after" in answer else ""
        size = len(body.encode())
        if answer.get("chunked"):
            middle = size // 2
            parts = [body.encode()[:middle], body.encode()[middle:], b""]
            chunks = "".join(f"{len(part):x}\r\n{part.decode()}\r\n" for part in parts)
            return f"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{chunks}"
        return f"HTTP/1.1 {answer.get('status', 200)} Status\r\n{after}content-length: {size}\r\n\r\n{body}"


def serve(case, door):
    answers = iter(case["requests"])

    async def connection(reader, writer):
        try:
            while (read := await door.read(reader)) is not None:
                if isinstance(read, dict):  # A wish to cancel.
                    continue
                event, number = read
                answer = next(answers, TOO_MANY)
                # What a balancer in between has read. Lines have none.
                wanted = answer.get("headers", {}) if door is Http else {}
                if any(number.get(name) != value for name, value in wanted.items()):
                    answer = {"answer": {"verdict": "halt", "reason": f"headers {number}"}}
                if answer.get("hang"):
                    await reader.read()
                    break
                await asyncio.sleep(answer.get("after_ms", 0) / 1000)
                raw = answer.get("raw", {}).get(door.__name__.lower())
                text = raw.replace("$id", str(number)) if raw is not None else ""
                if raw is None and answer.keys() != {"close"}:
                    text = answer.get("first", "") * (door is Lines) + door.write(answer, event, number)
                data = text.encode("utf-8", "surrogateescape")
                writer.write(data[: len(data) // 2] if answer.get("half") else data)
                await writer.drain()
                if answer.get("close") or answer.get("half"):
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # The client has gone.
        writer.close()

    return connection


async def main(directory):
    for number, case in enumerate(CASES):
        for door in (Lines, Http):
            path = directory / f"{number}.{door.__name__.lower()}"
            await asyncio.start_unix_server(serve(case, door), path, limit=64 << 20)
    print("ready", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


asyncio.run(main(Path(sys.argv[1])))
