"""What a client does beyond the cases that all clients share."""

import asyncio
import gc
import json
import logging
import os
import subprocess
import sys
import tempfile
import threading
import tracemalloc
import unittest
from concurrent.futures import ThreadPoolExecutor

from support import Daemon

import hookyard_client
from hookyard_client import Problem, connect, connect_async, fake, fake_async

DOORS = ("lines", "socket", "url")


def bash(command):
    return {"name": "Bash", "input": {"command": command}}


class WithDaemon(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon()
        cls.daemon.start()

    @classmethod
    def tearDownClass(cls):
        cls.daemon.remove()

    def every(self, test):
        """Runs a test with threads through every door."""
        for door, address in self.daemon.addresses().items():
            with self.subTest(door=door), connect(**address) as yard:
                test(yard, door)

    def every_async(self, test):
        """The same with asyncio."""

        async def run(address, door):
            async with connect_async(**address) as yard:
                await asyncio.wait_for(test(yard, door), 60)

        for door, address in self.daemon.addresses().items():
            with self.subTest(door=door):
                asyncio.run(run(address, door))


class Load(WithDaemon):
    def test_a_thousand_events_at_the_same_time_with_threads(self):
        def ask(yard, number):
            return yard.before_tool_dispatch(run=f"many-{number}", tool=bash("ls" if number % 2 else "curl x")).verdict

        def test(yard, _):
            with ThreadPoolExecutor(32) as pool:
                verdicts = list(pool.map(lambda number: ask(yard, number), range(1000)))
            self.assertEqual(verdicts, ["ask", "allow"] * 500)

        self.every(test)

    def test_a_thousand_events_at_the_same_time_with_asyncio(self):
        async def test(yard, _):
            asked = (yard.before_tool_dispatch(run=f"many-{n}", tool=bash("ls" if n % 2 else "curl x")) for n in range(1000))
            # Each event over HTTP has a connection, and the daemon has limits.
            if _ == "lines":
                outcomes = await asyncio.gather(*asked)
            else:
                outcomes = [await one for one in asked]
            self.assertEqual([outcome.verdict for outcome in outcomes], ["ask", "allow"] * 500)

        self.every_async(test)

    def test_sixteen_megabytes_are_sent_and_more_is_told(self):
        def tool(size):
            return {"name": "Read", "input": {"text": "\u2028" * (size // 3)}}

        def test(yard, _):
            outcome = yard.before_tool_dispatch(run="large", tool=tool((16 << 20) - 1024))
            self.assertEqual((outcome.verdict, outcome.problem), ("proceed", None))
            self.assertEqual(yard.before_tool_dispatch(run="large", tool=tool(17 << 20)).problem.code, "too_large")
            self.assertIsNone(yard.agent_stopping(run="large").problem)

        async def test_async(yard, _):
            outcome = await yard.before_tool_dispatch(run="large", tool=tool((16 << 20) - 1024))
            self.assertEqual((outcome.verdict, outcome.problem), ("proceed", None))
            outcome = await yard.before_tool_dispatch(run="large", tool=tool(17 << 20))
            self.assertEqual(outcome.problem.code, "too_large")
            self.assertIsNone((await yard.agent_stopping(run="large")).problem)

        self.every(test)
        self.every_async(test_async)

    def test_a_forked_process_has_connections_of_its_own(self):
        def test(yard, door):
            self.assertEqual(yard.before_tool_dispatch(run="fork", tool=bash("ls")).verdict, "allow")
            child = os.fork()
            if child == 0:
                outcomes = [yard.before_tool_dispatch(run=f"fork-{door}", tool=bash("curl x")) for _ in range(50)]
                os._exit(0 if all(outcome.verdict == "ask" for outcome in outcomes) else 1)
            verdicts = {yard.before_tool_dispatch(run="fork", tool=bash("ls")).verdict for _ in range(50)}
            self.assertEqual((verdicts, os.waitpid(child, 0)[1]), ({"allow"}, 0))

        self.every(test)


class BadInput(WithDaemon):
    def test_no_number_and_no_letter_is_changed(self):
        def test(yard, _):
            def sent(name, value):
                return yard.before_tool_dispatch(run="exact", tool={"name": name, "input": value})

            self.assertEqual(sent("Integer", {"keep": 2**70}).payload, {"keep": 2**70, "n": 12345678901234567890})
            self.assertEqual(sent("Decimal", {}).problem.code, "bad_answer")
            letters = {"letters": "\0\u2028\u0085😀"}
            self.assertEqual(sent("Read", letters).payload, letters)
            deep = []
            for _ in range(100_000):
                deep = [deep]
            for none in (float("nan"), float("-inf"), "\ud800", {1, 2}, deep):
                self.assertEqual(sent("Read", {"none": none}).problem.code, "bad_event")
            while deep:
                deep = deep.pop()

        self.every(test)

    def test_a_wrong_token_is_told_and_not_shown(self):
        with connect(url=self.daemon.url, token="secret-of-nobody") as yard:
            outcome = yard.agent_stopping(run="r")
        self.assertEqual((outcome.verdict, outcome.problem.code), ("block", "unauthorized"))
        self.assertNotIn("secret-of-nobody", outcome.reason)
        with connect(url=self.daemon.url, token=lambda: "a\r\nb") as yard:
            self.assertEqual(yard.agent_stopping(run="r").problem.code, "bad_token")

    def test_no_daemon_in_a_directory_that_others_can_write_to_is_asked(self):
        self.daemon.path.chmod(0o777)
        try:
            for door in ("lines", "socket"):
                with connect(**self.daemon.addresses()[door]) as yard:
                    self.assertEqual(yard.agent_stopping(run="r").problem.code, "untrusted_socket")
        finally:
            self.daemon.path.chmod(0o700)

    def test_options_that_are_none_are_refused(self):
        for options in ({"if_down": "alow"}, {"timeout": 0}, {"timeout": float("nan")}, {"retry_for": -1},
                        {"lines": "a", "socket": "b"}, {"token": "t"}, {"url": "nowhere"}, {"url": "ftp://host"}, {"if_dwon": "allow"}):
            with self.assertRaises((TypeError, ValueError), msg=options):
                connect(**options)
        with self.assertRaises(ValueError):
            fake().agent_stopping(run="r", if_down="maybe")
        with self.assertRaises(TypeError):
            fake().agent_stopping(run="r", timout=1)
        with self.assertRaises(ValueError):
            fake({"before_tool_dispach": {}})

    def test_an_event_that_goes_on_without_a_verdict_is_never_silent(self):
        nowhere = {"socket": "/nowhere/hookyard.sock", "retry_for": 0}
        with self.assertLogs("hookyard", logging.WARNING) as logged, connect(**nowhere, if_down="allow") as yard:
            self.assertEqual(yard.agent_stopping(run="r").verdict, "proceed")
            self.assertEqual(yard.agent_stopping(run="r", if_down="block").verdict, "block")
        self.assertIn("no daemon answers at /nowhere", logged.output[0])
        self.assertEqual(len(logged.output), 1)


class Ends(WithDaemon):
    def test_a_timeout_ends_the_event_and_its_hooks(self):
        def test(yard, door):
            run = f"late-{door}"
            outcome = yard.before_tool_dispatch(run=run, tool={"name": "Slow", "input": {}}, timeout=0.1)
            self.assertEqual(outcome.problem.code, "timeout")
            # Events of a run take turns: this one would wait for a minute.
            self.assertEqual(yard.before_tool_dispatch(run=run, tool=bash("ls"), timeout=30).verdict, "allow")

        self.every(test)

    def test_cancelling_ends_the_event_and_its_hooks(self):
        async def test(yard, door):
            run = f"cancelled-{door}"
            slow = asyncio.ensure_future(yard.before_tool_dispatch(run=run, tool={"name": "Slow", "input": {}}))
            await asyncio.sleep(0.1)
            slow.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await slow
            late = await yard.before_tool_dispatch(run=run, tool={"name": "Slow", "input": {}}, timeout=0.1)
            self.assertEqual(late.problem.code, "timeout")
            outcome = await yard.before_tool_dispatch(run=run, tool=bash("ls"), timeout=30)
            self.assertEqual(outcome.verdict, "allow")

        self.every_async(test)

    def test_a_closed_client_has_no_answers(self):
        def test(yard, door):
            threading.Timer(0.1, yard.close).start()
            slow = {"name": "Slow", "input": {}}
            self.assertEqual(yard.before_tool_dispatch(run=f"closed-{door}", tool=slow).problem.code, "closed")
            self.assertEqual(yard.agent_stopping(run="r").problem.code, "closed")

        async def test_async(yard, door):
            slow = {"name": "Slow", "input": {}}
            asked = asyncio.ensure_future(yard.before_tool_dispatch(run=f"closed-async-{door}", tool=slow))
            await asyncio.sleep(0.1)
            await yard.close()
            self.assertEqual((await asked).problem.code, "closed")
            self.assertEqual((await yard.agent_stopping(run="r")).problem.code, "closed")

        self.every(test)
        self.every_async(test_async)

    def test_one_client_outlives_event_loops(self):
        for door, address in self.daemon.addresses().items():
            yard = connect_async(**address)

            async def ask():
                return (await yard.before_tool_dispatch(run="loops", tool=bash("ls"))).verdict

            self.assertEqual([asyncio.run(ask()), asyncio.run(ask())], ["allow", "allow"], door)
            asyncio.run(yard.close())

    def test_a_client_outlives_a_daemon_that_is_killed(self):
        daemon = Daemon()
        daemon.start()
        for door in ("lines", "socket"):
            address = daemon.addresses()[door]
            with self.subTest(door=door), connect(**address, retry_for=60) as yard:
                self.assertEqual(yard.before_tool_dispatch(run="r", tool=bash("ls")).verdict, "allow")
                daemon.kill()
                self.assertEqual(yard.agent_stopping(run="r", retry_for=0).problem.code, "down")
                again = threading.Timer(0.2, daemon.start)
                again.start()
                self.assertEqual(yard.before_tool_dispatch(run="r", tool=bash("ls")).verdict, "allow")
                again.join()

        async def killed():
            async with connect_async(lines=daemon.lines, retry_for=60) as yard:
                slow = asyncio.ensure_future(yard.before_tool_dispatch(run="k", tool={"name": "Slow", "input": {}}))
                await asyncio.sleep(0.2)
                daemon.kill()
                self.assertEqual((await slow).problem.code, "lost")
                again = threading.Timer(0.2, daemon.start)
                again.start()
                self.assertEqual((await yard.before_tool_dispatch(run="k", tool=bash("ls"))).verdict, "allow")
                again.join()

        asyncio.run(killed())
        daemon.remove()


class Servers(unittest.TestCase):
    """With a server of the test."""

    TRACE = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"
    PROCEED = {"decision_id": "d", "event": "agent_stopping", "verdict": "proceed", "suppress_output": False, "hooks": [],
               "snapshot_version": 1}
    INVALID_TRACES = ("00-bad\r\nhost: x", "ff" + TRACE[2:], TRACE[:3] + "0" * 32 + TRACE[35:], TRACE[:36] + "0" * 16 + TRACE[52:])

    def test_a_valid_trace_context_is_sent_and_no_other(self):
        seen = []

        async def lines(reader, writer):
            async for line in reader:
                read = json.loads(line)
                seen.append(read.get("headers"))
                writer.write(json.dumps({"id": read["id"], "outcome": self.PROCEED}).encode() + b"\n")
            writer.close()

        async def http(reader, writer):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            seen.append(self.TRACE if f"\r\ntraceparent: {self.TRACE}\r\n" in head else head.count("traceparent"))
            body = json.dumps(self.PROCEED)
            writer.write(f"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode())
            writer.close()

        async def test(directory):
            for name, serve in (("lines", lines), ("socket", http)):
                path = f"{directory}/{name}.sock"
                server = await asyncio.start_unix_server(serve, path)
                with connect(**{name: path}, traceparent=lambda: self.TRACE) as yard:
                    await asyncio.to_thread(yard.agent_stopping, run="r")
                    for trace in self.INVALID_TRACES:
                        await asyncio.to_thread(yard.agent_stopping, run="r", traceparent=trace)
                async with connect_async(**{name: path}, traceparent=self.TRACE) as yard:
                    self.assertIsNone((await yard.agent_stopping(run="r")).problem)
                server.close()

        with tempfile.TemporaryDirectory() as directory:
            asyncio.run(test(directory))
        headers = {"traceparent": self.TRACE}
        count = len(self.INVALID_TRACES)
        self.assertEqual(seen, [headers, *[None] * count, headers, self.TRACE, *[0] * count, self.TRACE])

    def test_what_a_daemon_does_not_read_has_a_bound(self):
        reads = asyncio.Event()

        async def lines(reader, writer):
            await reads.wait()
            while True:
                read = json.loads(await reader.readline())
                if read.get("event", {}).get("run_id") == "last":
                    writer.write(json.dumps({"id": read["id"], "outcome": self.PROCEED}).encode() + b"\n")
                    break

        async def test(path):
            server = await asyncio.start_unix_server(lines, path, limit=1 << 22)
            async with connect_async(lines=path, on_problem=lambda *_: None) as yard:
                tracemalloc.start()

                async def asks(number):
                    prompt = str(number).ljust(1 << 20)
                    return (await yard.prompt_submitted(run="r", prompt=prompt, timeout=0.5, if_down="allow")).problem.code

                self.assertEqual(set(await asyncio.gather(*map(asks, range(150)))), {"timeout"})
                gc.collect()
                self.assertLess(tracemalloc.get_traced_memory()[0], 80 << 20)
                tracemalloc.stop()
                last = asyncio.ensure_future(yard.agent_stopping(run="last", timeout=20))
                await asyncio.sleep(0)
                reads.set()
                self.assertIsNone((await last).problem)
            server.close()

        with tempfile.TemporaryDirectory() as directory:
            asyncio.run(test(f"{directory}/lines.sock"))

    def test_one_connection_of_lines_is_used_until_the_daemon_drains_it(self):
        waiting, connections = {}, []

        async def lines(reader, writer):
            connections.append(writer)
            async for line in reader:
                read = json.loads(line)
                answer = json.dumps({"id": read["id"], "outcome": self.PROCEED}).encode() + b"\n"
                if read["event"]["run_id"] == "r":
                    writer.write(answer)
                else:
                    waiting[read["event"]["run_id"]] = (writer, answer)

        async def test(path):
            server = await asyncio.start_unix_server(lines, path)
            async with connect_async(lines=path) as yard:
                first = asyncio.ensure_future(yard.agent_stopping(run="first"))
                late = asyncio.ensure_future(yard.agent_stopping(run="late", timeout=0.1))
                for _ in range(5):
                    await yard.agent_stopping(run="r")
                self.assertEqual(len(connections), 1)
                connections[0].write(b'{"draining":true}\n')
                while len(connections) == 1:
                    self.assertIsNone((await yard.agent_stopping(run="r")).problem)
                # There is no line of the host any more that could cancel it.
                self.assertEqual((await late).problem.code, "timeout")
                writer, answer = waiting["first"]
                writer.write(answer)
                self.assertIsNone((await first).problem)
            for writer in connections:
                writer.close()
            server.close()

        with tempfile.TemporaryDirectory() as directory:
            asyncio.run(asyncio.wait_for(test(f"{directory}/lines.sock"), 60))


class Fakes(unittest.TestCase):
    def test_a_fake_answers_as_a_test_says_and_keeps_the_events(self):
        def judge(event):
            if event["tool_input"]["command"] == "rm":
                return {"verdict": "block", "reason": "no"}
            return {"patched": {"tool_input": {"command": "ls"}}}

        yard = fake({"before_tool_dispatch": judge})
        self.assertEqual(yard.before_tool_dispatch(run="r", tool=bash("rm")).reason, "no")
        self.assertEqual(yard.before_tool_dispatch(run="r", tool=bash("dir")).payload, {"command": "ls"})
        self.assertEqual([event["event"] for event in yard.events], ["before_tool_dispatch"] * 2)

    def test_a_fake_can_be_down_and_say_what_is_no_verdict(self):
        def away(_):
            raise Problem("down", "away", "wait", "safe")

        async def ask():
            yard = fake_async({"agent_stopping": away, "notification": {"verdict": "perhaps"}}, if_down="allow")
            return await yard.agent_stopping(run="r"), await yard.notification(run="r")

        with self.assertLogs("hookyard", logging.WARNING):
            down, unknown = asyncio.run(ask())
        self.assertEqual((down.verdict, down.problem.code), ("proceed", "down"))
        self.assertEqual((unknown.verdict, unknown.problem.code), ("block", "unknown_verdict"))


class Package(unittest.TestCase):
    def test_the_import_is_small(self):
        root = os.path.dirname(os.path.dirname(hookyard_client.__file__))
        large = {"asyncio", "ssl", "http", "logging", "urllib"}
        for imported, without in (("hookyard_client._client", large), ("hookyard_client.worker", large | {"socket", "typing"})):
            program = f"import sys, {imported}; print(sorted({without} & {{*sys.modules}}))"
            run = subprocess.run([sys.executable, "-S", "-c", program], cwd=root, capture_output=True, check=True, text=True)
            self.assertEqual(run.stdout, "[]\n", imported)

    def test_a_worker_serves_events(self):
        program = "from hookyard_client.worker import serve; serve(lambda envelope: {'reason': envelope['tool_name']})"
        root = os.path.dirname(os.path.dirname(hookyard_client.__file__))
        for mode, given, expected in (
            ("1", '{"id":"7","envelope":{"tool_name":"Bash"}}\n', '{"hookyard":1,"pipeline":true}\n{"id":"7","output":{"reason": "Bash"}}\n'),
            ("", '{"tool_name":"Bash"}', '{"reason": "Bash"}\n'),
        ):
            run = subprocess.run([sys.executable, "-c", program], cwd=root, env={**os.environ, "HOOKYARD_WORKER": mode},
                                 input=given, capture_output=True, check=True, text=True, timeout=60)
            self.assertEqual(run.stdout, expected)

    def test_what_the_package_names_is_there(self):
        for name in hookyard_client.__all__:
            self.assertTrue(hasattr(hookyard_client, name), name)
        self.assertFalse(hasattr(hookyard_client, "nothing"))


if __name__ == "__main__":
    unittest.main()
