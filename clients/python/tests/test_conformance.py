"""The cases that all clients share, at a daemon and at a stub of one, with threads and with asyncio."""

import asyncio
import itertools
import unittest

from support import Daemon, Stub, cases

from hookyard_client import connect, connect_async, fake, fake_async
from hookyard_client._schema import EVENT_KINDS


class Threads:
    """One event through the client for threads."""

    fake = staticmethod(fake)

    @staticmethod
    def ask(kind, address, options, fields):
        with connect(**address, **options) as yard:
            return getattr(yard, kind)(**fields)


class Asyncio:
    """One event through the client for asyncio."""

    fake = staticmethod(fake_async)

    @staticmethod
    def ask(kind, address, options, fields):
        async def ask():
            async with connect_async(**address, **options) as yard:
                return await getattr(yard, kind)(**fields)

        return asyncio.run(ask())


class Conformance:
    runs = itertools.count()

    def test_every_kind_of_event_has_a_method_and_its_fields(self):
        self.assertEqual([case["kind"] for case in cases("events")], list(EVENT_KINDS))
        yard = self.client.fake()
        place = {"run": "r", "session": "s", "workspace": "w", "cwd": "/c", "id": "e", "wait": True}
        sent = {"run_id": "r", "session_id": "s", "workspace_id": "w", "cwd": "/c", "event_id": "e", "wait": True}
        for case in cases("events"):
            self.send(getattr(yard, case["kind"])(**place, **case["with"]))
            self.assertEqual(yard.events[-1], {"event": case["kind"], **sent, **case["sent"]})
        self.send(yard.agent_stopping(run="r"))
        self.assertEqual(yard.events[-1], {"event": "agent_stopping", "run_id": "r", "session_id": "r"})

    def test_every_kind_of_event_is_answered(self):
        for (door, address), case in itertools.product(daemon.addresses().items(), cases("events")):
            with self.subTest(door=door, kind=case["kind"]):
                fields = {"run": f"kinds-{next(self.runs)}", **case["with"]}
                outcome = self.client.ask(case["kind"], address, {}, fields)
                self.assertEqual((outcome.verdict, outcome.problem), ("proceed", None))
                self.assertEqual(outcome.payload, case.get("payload"))

    def test_every_verdict_is_understood(self):
        for (door, address), case in itertools.product(daemon.addresses().items(), cases("outcomes")):
            with self.subTest(door=door, case=case["name"]):
                tool = {"name": "Bash", "input": {"command": case["command"]}}
                fields = {"run": f"run-{next(self.runs)}", "tool": tool}
                outcome = self.client.ask("before_tool_dispatch", address, {}, fields)
                self.assertIsNone(outcome.problem)
                self.assert_expected(outcome, case["expect"])

    def test_no_fault_of_a_daemon_is_consent(self):
        for if_down in ("block", "allow"):
            stub = Stub()
            try:
                for (number, case), door in itertools.product(enumerate(cases("faults")), ("lines", "http")):
                    with self.subTest(if_down=if_down, door=door, case=case["name"]):
                        path = str(stub.path / f"{number}.{door}")
                        self.judge(case, {"lines" if door == "lines" else "socket": path}, if_down)
            finally:
                stub.end()

    def judge(self, case, address, if_down):
        told = []
        options = {"if_down": if_down, "timeout": case.get("timeout", 60), "retry_for": case.get("retry_for", 30),
                   "on_problem": lambda *report: told.append(report)}
        given = case.get("input", {"command": "ls"})
        fields = {"run": case.get("run", "r"), "tool": {"name": "Bash", "input": given}, **({"id": case["id"]} if "id" in case else {})}
        outcome = self.client.ask("before_tool_dispatch", address, options, fields)
        problem = outcome.problem
        if "expect" in case:
            self.assertIsNone(problem)
            return self.assert_expected(outcome, case["expect"])
        self.assertIsNotNone(problem)
        words = dict(case["problem"])
        code = words.pop("code")
        self.assertIn(problem.code, code if isinstance(code, list) else [code])
        self.assert_expected(problem, words)
        goes_on = if_down == "allow" and code != "unknown_verdict"
        self.assertEqual((outcome.verdict, outcome.proceeds), ("proceed" if goes_on else "block", goes_on))
        self.assertEqual(outcome.payload, given)
        self.assertIn(problem.message, outcome.reason)
        self.assertIn(problem.hint, outcome.reason)
        self.assertEqual(told, [(problem, outcome)])

    def assert_expected(self, seen, expected):
        self.assertEqual({name: getattr(seen, name) for name in expected}, expected)


class WithThreads(Conformance, unittest.TestCase):
    client = Threads

    def send(self, outcome):
        return outcome


class WithAsyncio(Conformance, unittest.TestCase):
    client = Asyncio

    def send(self, awaited):
        async def send():
            return await awaited

        return asyncio.run(send())


def setUpModule():
    global daemon
    daemon = Daemon()
    daemon.start()


def tearDownModule():
    daemon.remove()


if __name__ == "__main__":
    unittest.main()
