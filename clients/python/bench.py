"""Measures a round trip over the door of lines beside that of bare lines of JSON to an echo in Python, alternating.

    python3 bench.py SOCKET    the socket of lines of a daemon without hooks for the tool `Read`
"""

import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time

from hookyard_client import connect, connect_async

ROUNDS, EVENTS, AT_ONCE = 15, 2000, 64
INPUT = {"command": "x" * 200}
EVENT = {"event": "before_tool_dispatch", "session_id": "r", "run_id": "r", "tool_name": "Read", "tool_input": INPUT}


def echo(path):
    """Sends lines back: of one connection after the other, or, for asyncio, of all at the same time."""

    async def connection(reader, writer):
        async for line in reader:
            writer.write(json.dumps(json.loads(line)).encode() + b"\n")

    async def serve():
        await asyncio.start_unix_server(connection, path + ".asyncio")
        await asyncio.Event().wait()

    if path.endswith(".threads"):
        server = socket.socket(socket.AF_UNIX)
        server.bind(path)
        server.listen()
        print(flush=True)
        for line in (lines := server.accept()[0].makefile("rwb")):
            lines.write(json.dumps(json.loads(line)).encode() + b"\n")
            lines.flush()
    else:
        print(flush=True)
        asyncio.run(serve())


def report(name, floors, clients):
    floor, client = statistics.median(floors), statistics.median(clients)
    print(f"{name}: {client:.1f} µs; bare lines {floor:.1f} µs; ratio {client / floor:.2f}")


def threads(path, target):
    bare = socket.socket(socket.AF_UNIX)
    bare.connect(path + ".threads")
    lines = bare.makefile("rwb")
    yard = connect(lines=target)

    def floor(number):
        lines.write(json.dumps({"id": number, "event": EVENT}).encode() + b"\n")
        lines.flush()
        assert json.loads(lines.readline())["id"] == number

    def client(_):
        assert yard.before_tool_dispatch(run="r", tool={"name": "Read", "input": INPUT}).problem is None

    def measure(ask):
        start = time.perf_counter()
        for number in range(EVENTS):
            ask(number)
        return (time.perf_counter() - start) * 1e6 / EVENTS

    pairs = [(measure(floor), measure(client)) for _ in range(ROUNDS)]
    report("threads, 1 at a time", *zip(*pairs))


async def asyncio_clients(path, target):
    reader, writer = await asyncio.open_unix_connection(path + ".asyncio")
    waiting, last = {}, 0

    async def read():
        async for line in reader:
            answer = json.loads(line)
            waiting.pop(answer["id"]).set_result(answer)

    reading = asyncio.create_task(read())

    async def floor():
        nonlocal last
        last += 1
        future = waiting[last] = asyncio.get_running_loop().create_future()
        writer.write(json.dumps({"id": last, "event": EVENT}).encode() + b"\n")
        await future

    yard = connect_async(lines=target)

    async def client():
        assert (await yard.before_tool_dispatch(run="r", tool={"name": "Read", "input": INPUT})).problem is None

    async def measure(ask, at_once):
        left = iter(range(EVENTS))

        async def work():
            for _ in left:
                await ask()

        start = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(at_once)))
        return (time.perf_counter() - start) * 1e6 / EVENTS

    for at_once in (1, AT_ONCE):
        pairs = [(await measure(floor, at_once), await measure(client, at_once)) for _ in range(ROUNDS)]
        report(f"asyncio, {at_once} at a time", *zip(*pairs))
    await yard.close()
    reading.cancel()
    writer.close()


def import_time():
    programs = {"with the client": "import hookyard_client", "without": "pass"}
    times = {name: [] for name in programs}
    for _ in range(ROUNDS):
        for name, program in programs.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, "-IS", "-c", f"import sys; sys.path.insert(0, {os.getcwd()!r}); {program}"], check=True)
            times[name].append((time.perf_counter() - start) * 1000)
    both = [min(of) for of in times.values()]
    print(f"import: {both[0] - both[1]:.1f} ms; Python alone {both[1]:.1f} ms")


def main(target):
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/echo"
        echoes = [subprocess.Popen([sys.executable, __file__, path + end, "echo"], stdout=subprocess.PIPE) for end in (".threads", "")]
        for child in echoes:
            child.stdout.readline()
        time.sleep(0.3)
        threads(path, target)
        asyncio.run(asyncio_clients(path, target))
        for child in echoes:
            child.kill()
            child.wait()
            child.stdout.close()
    import_time()


echo(sys.argv[1]) if sys.argv[2:] == ["echo"] else main(sys.argv[1])
