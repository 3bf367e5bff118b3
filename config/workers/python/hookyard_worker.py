"""Serves one hook function in all three modes: oneshot, prespawn and worker.

    from hookyard_worker import serve    # In the package hookyard-client, it is hookyard_client.worker.

    def guard(envelope):
        return {"decision": "block", "reason": "no"} if ... else None

    serve(guard)

The function gets the envelope and returns the output object, or None if it has no opinion. If it raises an exception,
the hook fails. In worker mode one process calls the function for many events, so global state is kept between them, and
whatever the function prints goes to standard error. Events are served one after the other; with serve(guard, threads=8)
eight threads serve as many at once, for functions that wait and are safe to call from several threads.

If orjson is installed, a worker reads envelopes with it. Integers beyond 64 bits are floats then.
"""

import json
import os
import sys

LONGEST_ERROR = 500

CHUNK = 64 * 1024

# As json.dumps, without the search for cycles, which would end in an error anyhow.
_encode = json.JSONEncoder(check_circular=False).encode


def serve(hook, threads=None):
    """Serves all events as a worker, and one event otherwise."""
    if os.environ.get("HOOKYARD_WORKER") == "1":
        _serve_all(hook, threads)
    else:
        _serve_one(hook)


def _serve_one(hook):
    output = hook(json.loads(sys.stdin.buffer.read()))
    if output:
        print(_encode(output))


def _serve_all(hook, threads):
    # Not above, so that a process for one event starts quicker.
    from queue import SimpleQueue
    from threading import Lock, Thread

    requests, replies = _take_pipes()
    decode = _decoder()
    lock = Lock()

    def send(line):
        line = line.encode()
        with lock:
            while line:
                line = line[os.write(replies, line) :]

    def answer(message):
        # Sent before the next event begins: by that hookyard knows which event a worker was at when it died.
        send(_answer(hook, message))

    def work():
        for message in iter(messages.get, None):
            answer(message)

    messages, take = SimpleQueue(), answer
    if threads:
        take = messages.put
        for _ in range(threads):
            Thread(target=work).start()
        send(f'{{"hookyard":1,"multiplex":true,"max_events":{threads}}}\n')
    else:
        send('{"hookyard":1,"pipeline":true}\n')
    for line in _lines(requests):
        message = decode(line)
        if "envelope" in message:
            take(message)
        elif "ping" in message:
            send('{"pong":1}\n')
        # Ignores "cancel": the event is answered anyhow, and nobody waits for the answer.
    for _ in range(threads or 0):
        messages.put(None)


def _take_pipes():
    """The pipes of the protocol. What the function prints, and programs that it starts, get others."""
    requests, replies = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return requests, replies


def _lines(pipe):
    parts = []
    while chunk := os.read(pipe, CHUNK):
        *lines, rest = chunk.split(b"\n")
        if lines:
            parts.append(lines[0])
            lines[0] = b"".join(parts)
            parts.clear()
            yield from lines
        if rest:
            parts.append(rest)


def _decoder():
    def decode(line):
        return plain(line.decode())[0]

    plain = json.JSONDecoder().raw_decode
    try:
        from orjson import JSONDecodeError, loads
    except ImportError:
        return decode

    def decode_fast(line):
        try:
            return loads(line)
        except JSONDecodeError:
            # It refuses some numbers, such as 1e400.
            return decode(line)

    return decode_fast


def _answer(hook, message):
    number = _encode(message["id"])
    try:
        output = hook(message["envelope"])
        return f'{{"id":{number},"output":{_encode(output) if output else "{}"}}}\n'
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {error}"[:LONGEST_ERROR]
        return f'{{"id":{number},"error":{_encode(reason)}}}\n'
