"""A command hook of Claude Code that asks hookyard over its socket of lines and does what it is told, for the bench `peers`.

    python3 -I -S lines.py SOCKET_OF_LINES
"""

import json
import socket
import sys

with socket.socket(socket.AF_UNIX) as hookyard:
    hookyard.connect(sys.argv[1])
    question = {"id": 1, "dialect": "claude", "as": "process", "event": json.load(sys.stdin)}
    hookyard.sendall(json.dumps(question).encode() + b"\n")
    answer = json.loads(hookyard.makefile().readline())
if "error" in answer:
    print(answer["error"]["message"], answer["error"]["hint"], sep="; ", file=sys.stderr)
    sys.exit(2)
process = answer["answer"]
sys.stdout.write(process["stdout"])
sys.stderr.write(process["stderr"])
sys.exit(process["exit_code"])
