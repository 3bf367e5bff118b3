"""A worker that misbehaves as its first argument says. The `command` of each event's tool input says what it is
asked: `block` blocks in the name of its process, and so tells workers and oneshot processes apart."""

import json
import os
import sys
import time

how = sys.argv[1]
out = sys.stdout


def say(message):
    out.write((message if isinstance(message, str) else json.dumps(message)) + "\n")
    out.flush()


def block(reason):
    return {"decision": "block", "reason": reason}


if os.environ.get("HOOKYARD_WORKER") != "1":
    envelope = json.load(sys.stdin)
    print(json.dumps(block("oneshot " + str(envelope["tool_input"].get("command")))))
    sys.exit(0)

assert "HOOKYARD_EVENT" not in os.environ
if how == "silent":
    time.sleep(600)
elif how == "exits":
    sys.exit(0)
elif how == "raises":
    raise ImportError("no module of this name")
elif how == "future":
    say({"hookyard": 2})
elif how == "chatter":
    say("starting up")
else:
    say({"hookyard": 1, "multiplex": how == "multiplex", "pipeline": how == "pipeline"})

waiting = []
served = 0
for line in sys.stdin:
    message = json.loads(line)
    if "ping" in message:
        say({"pong": 1})
        continue
    if "cancel" in message:
        with open("cancelled.txt", "a") as file:
            file.write("cancelled\n")
        # A multiplexing worker answers what was cancelled as well.
        for event in waiting:
            say({"id": event["id"], "output": {}})
        waiting = []
        continue
    served += 1
    number, envelope = message["id"], message["envelope"]
    command = envelope["tool_input"]["command"]
    answer = {"id": number, "output": block(f"{os.getpid()} {served} {command}")}
    if command == "fine":
        say(answer)
    elif command == "error":
        say({"id": number, "error": "no idea"})
    elif command == "hold":
        with open("held.txt", "a") as file:
            file.write("held\n")
        waiting.append(message)
    elif command == "release":
        say(answer)
        for event in waiting:
            say({"id": event["id"], "output": block("released")})
        waiting = []
    elif command == "until go":
        with open("held.txt", "a") as file:
            file.write("held\n")
        while not os.path.exists("go"):
            time.sleep(0.01)
        with open("held.txt", "a") as file:
            file.write("done\n")
        say(answer)
    elif command == "noise":
        for _ in range(64):
            sys.stderr.write("x" * (1 << 20))
        say(answer)
    elif command == "hang":
        with open("held.txt", "a") as file:
            file.write("held\n")
        time.sleep(600)
    elif command == "sleep":
        time.sleep(600)
    elif command == "garbage":
        say("garbage")
    elif command == "unknown":
        say({"id": "4711", "output": {}})
    elif command == "twice":
        say(answer)
        say(answer)
    elif command == "flood":
        say("x" * (10 << 20))
    elif command == "half":
        out.write('{"id":"')
        out.flush()
        sys.exit(0)
    elif command == "die":
        sys.exit(0)
    elif command == "trace":
        answer["output"] = block(message.get("traceparent", "none") + " " + os.environ.get("TRACEPARENT", "none"))
        say(answer)
    elif command == "lines":
        answer["output"] = block(envelope["tool_input"]["text"])
        say(answer)
