"""The adapters in their frameworks: every example with the cases that all adapters share, at a daemon and without one.

The frameworks are those of `requirements.txt`, which `scripts/clients` installs.
"""

import asyncio
import importlib
import inspect
import json
import logging
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

from support import Daemon, cases

from hookyard_client import Problem, connect, connect_async, fake, fake_async

CLIENTS = Path(__file__).parents[2]
EXAMPLES = CLIENTS / "python/examples"
sys.path.insert(0, str(EXAMPLES))
TOKEN = "ghp_" + "a1B2" * 9

logging.getLogger("google_adk").setLevel(logging.CRITICAL)


def run_tool(command):
    return f"token {TOKEN}" if command == "cat token" else f"ran {command}"


def away(_):
    raise Problem("down", "nobody is there", "start it", "safe")


class Adapter:
    """The tests of one adapter."""

    fake = staticmethod(fake_async)
    tool, lacks = "bash", ()

    @classmethod
    def setUpClass(cls):
        cls.example = importlib.import_module(cls.name)

    def play(self, yard, turns, place=None, **options):
        """Plays with the client for asyncio."""

        async def play():
            try:
                return await self.example.play(yard, turns, **{"place": place, "run_tool": run_tool, **options})
            finally:
                closed = yard.close()
                if inspect.isawaitable(closed):
                    await closed

        return asyncio.run(asyncio.wait_for(play(), 60))

    def connect(self):
        return connect_async(lines=daemon.lines)

    def test_the_shared_cases(self):
        for number, case in enumerate(case for case in cases("frameworks") if case.get("needs") not in self.lacks):
            with self.subTest(case["name"]):
                options = {key: case[key] for key in ("prompt", "approve") if key in case}
                if "prompt" in options:
                    options["prompt"] = options["prompt"].replace("TOKEN", TOKEN)
                place = {"run": f"{self.id()}-{number}", "cwd": str(daemon.workspace)}
                played = self.play(self.connect(), case["turns"], place, **options)
                told = [None if expected is None else said for said, expected in zip(played["told"], case["told"])]
                self.assertEqual((played["ran"], told, len(played["told"])), (case["ran"], case["told"], len(case["told"])))
                ended = case["ended"]
                self.assertIn(played["ended"], ended if isinstance(ended, list) else [ended])
                self.assertIn(case.get("asked", ""), played["asked"])
                self.assertNotIn(TOKEN, played["asked"])

    def test_the_example_is_a_program(self):
        environment = {**os.environ, "HOOKYARD_LISTEN_LINES": daemon.lines, "PYTHONPATH": str(CLIENTS / "python")}
        words = [sys.executable, "-W", "ignore", EXAMPLES / f"{self.name}.py"]
        run = subprocess.run(words, cwd=daemon.workspace, env=environment, capture_output=True, check=True, text=True, timeout=60)
        self.assertEqual(run.stdout, "ran: ls\ntold:\n  this would remove everything\nremove one directory of the project\n  ran ls\n")

    def test_nothing_runs_and_nothing_is_told_without_a_verdict(self):
        for kind, ran in (("before_tool_dispatch", []), ("after_tool_dispatch", ["ls"])):
            with self.subTest(kind):
                yard = self.fake({kind: away})
                played = self.play(yard, [["ls"]], {"run": "r"})
                self.assertEqual(played["ran"], ran)
                # No output is reported of what did not run.
                self.assertEqual(sum(event["event"] == "after_tool_dispatch" for event in yard.events), len(ran))
                self.assertIn("hookyard gave no verdict: nobody is there", played["told"][0])
                allowed = self.play(self.fake({kind: away}, if_down="allow", on_problem=lambda *_: None), [["ls"]], {"run": "r"})
                self.assertEqual((allowed["ran"], allowed["told"]), (["ls"], ["ran ls"]))
        if "model" in self.lacks:
            return
        played = self.play(self.fake({"before_model_call": away}), [["ls"]], {"run": "r"})
        self.assertEqual(played["ran"], [])
        self.assertIn("hookyard gave no verdict: nobody is there", played["ended"])

    def test_what_is_blocked_after_a_person_agreed_does_not_run(self):
        if "pause" in self.lacks:
            self.skipTest("a call is asked about once")
        verdicts = ["ask"]

        def judge(_):
            return {"verdict": verdicts.pop() if verdicts else "block", "reason": "not any more"}

        played = self.play(self.fake({"before_tool_dispatch": judge}), [["ls"]], {"run": "r"}, approve=True)
        self.assertEqual((played["ran"], played["told"], played["ended"]), ([], ["not any more"], "done"))

    def test_events_say_what_runs_and_which_call_it_is(self):
        yard = self.fake({"before_tool_dispatch": {"patched": {"tool_input": {"command": "ls -l"}}}})
        self.play(yard, [["ls"]], {"run": "run-7", "session": "session-7"})
        events = [event for event in yard.events if event["event"].endswith("_dispatch")]
        self.assertEqual(any(event["event"] == "before_model_call" for event in yard.events), "model" not in self.lacks)
        places = {(event["run_id"], event.get("session_id")) for event in yard.events}
        self.assertEqual(len(places), 1)
        if "place" not in self.lacks:
            self.assertEqual(places, {("run-7", "session-7")})
        for event, command in zip([events[0], events[-1]], ["ls", "ls -l"]):
            self.assertEqual((event["tool_name"], event["tool_input"], event["tool_call_id"]), (self.tool, {"command": command}, "call-0-0"))
        self.assertEqual(events[-1]["event"], "after_tool_dispatch")
        # By this, hookyard recognises a call that is asked about twice.
        self.assertEqual(events[:-1], [events[0]] * (len(events) - 1))
        self.assertIn("ran ls -l", str(events[-1]["tool_output"]))

    def test_the_page_shows_what_is_tested(self):
        page = (CLIENTS.parent / "docs/clients.md").read_text()
        text = stripped((EXAMPLES / f"{self.name}.py").read_text())
        shown = [block for block in re.findall(r"\n```python\n(.*?)\n```", page, re.S) if f"adapters.{self.module} " in block]
        self.assertEqual(len(shown), 1)
        for part in shown[0].split("\n\n"):
            self.assertIn(stripped(part), text)


def stripped(text):
    return "\n".join(line.strip() for line in text.splitlines())


class OpenaiAgents(Adapter, unittest.TestCase):
    name, module = "openai_agents", "openai_agents"

    def test_a_tool_that_nothing_can_stand_before_is_refused(self):
        from agents import WebSearchTool

        from hookyard_client.adapters.openai_agents import guarded

        with self.assertRaisesRegex(TypeError, "function tools alone"):
            guarded(fake_async(), [WebSearchTool()], {"run": "r"})

    def test_a_call_that_asks_only_when_it_is_about_to_run_does_not_run(self):
        verdicts = ["ask", "proceed"]
        yard = fake_async({"before_tool_dispatch": lambda _: {"verdict": verdicts.pop(), "reason": "changed"}})
        played = self.play(yard, [["ls"]], {"run": "r"}, approve=True)
        self.assertEqual((played["ran"], played["told"]), ([], ["changed"]))

    def test_an_approval_of_its_own_stays_with_a_tool(self):
        from agents import function_tool

        from hookyard_client.adapters.openai_agents import guarded

        async def own(_, arguments, __):
            return arguments["command"] == "own"

        tool = function_tool(lambda command: command, name_override="bash", description_override="", needs_approval=own)
        [tool] = guarded(fake_async(), [tool], {"run": "r"})

        async def needs(command):
            class Context:
                context = None

            return await tool.needs_approval(Context, {"command": command}, "c")

        self.assertEqual((asyncio.run(needs("own")), asyncio.run(needs("ls"))), (True, False))


class Langchain(Adapter, unittest.TestCase):
    name, module = "langchain_agent", "langchain"

    def test_a_client_for_asyncio_cannot_be_used_without_it(self):
        from langchain.agents import create_agent

        from hookyard_client.adapters.langchain import HookyardMiddleware

        model = self.example.Script(messages=iter(["done"]))
        agent = create_agent(model, middleware=[HookyardMiddleware(fake_async(), {"run": "r"})])
        with self.assertRaisesRegex(TypeError, "ainvoke"):
            agent.invoke({"messages": [("user", "go")]})
        self.assertEqual(model.asked, [])


    def test_commands_and_what_else_tools_return(self):
        from langchain.messages import ToolMessage
        from langgraph.types import Command

        def message(text):
            return ToolMessage(text, tool_call_id="call-0-0")

        def command(text):
            return Command(update={"messages": [message(text)]})

        block = {"verdict": "block", "reason": "not for models"}
        patch = {"patched": {"tool_output": {"changed": True}}}
        blocks = {"patched": {"tool_output": [{"type": "text", "text": "changed"}]}}
        # What the tool returns, what hooks say, and what the model is told.
        for returned, says, told in [
            ("text", patch, '{"changed": true}'),
            ("text", {"patched": {"tool_output": [1]}}, "[1]"),
            ("text", blocks, [{"type": "text", "text": "changed"}]),
            (command("said"), {}, "said"),
            ([command("said")], {}, "said"),
            ([command("said")], block, "not for models"),
            ([command("said")], patch, "a hook changed what cannot be changed"),
            ([message("said")], {}, "said"),
        ]:
            with self.subTest(returned=returned, says=says):
                yard = self.fake({"after_tool_dispatch": says})
                played = self.play(yard, [["ls"]], {"run": "r"}, run_tool=lambda _: returned)
                self.assertEqual(played["told"], [told])
                [output] = [event["tool_output"] for event in yard.events if event["event"] == "after_tool_dispatch"]
                self.assertIn("text" if returned == "text" else "said", str(output))

    def test_an_approval_is_for_one_call(self):
        from langchain.agents import create_agent
        from langchain.messages import AIMessage
        from langgraph.checkpoint.memory import InMemorySaver
        from langgraph.types import Command

        from hookyard_client.adapters.langchain import HookyardMiddleware

        async def play(answers):
            ran = []

            def bash(command: str) -> None:
                """Runs a command."""
                ran.append(command)

            calls = [{"name": "bash", "args": {"command": f"command {number}"}, "id": f"call-{number}"} for number in range(2)]
            model = self.example.Script(messages=iter([AIMessage("", tool_calls=calls), AIMessage("done")]))
            middleware = HookyardMiddleware(fake_async({"before_tool_dispatch": {"verdict": "ask"}}), {"run": "r"})
            agent = create_agent(model, tools=[bash], middleware=[middleware], checkpointer=InMemorySaver())
            config = {"configurable": {"thread_id": "thread-1"}}
            state = await agent.ainvoke({"messages": [("user", "go")]}, config)
            await agent.ainvoke(Command(resume={wait.id: answers(wait.value) for wait in state["__interrupt__"]}), config)
            return ran

        for answers, ran in [
            (lambda _: {"type": "approve"}, []),
            (lambda _: {"type": "approve", "tool_call_id": "call-1"}, ["command 1"]),
            (lambda asked: {"type": "approve", "tool_call_id": asked["tool_call_id"]}, ["command 0", "command 1"]),
        ]:
            self.assertEqual(asyncio.run(play(answers)), ran)


class LangchainWithThreads(Langchain):
    fake = staticmethod(fake)

    def connect(self):
        return connect(lines=daemon.lines)


class GoogleAdk(Adapter, unittest.TestCase):
    name, module = "google_adk", "google_adk"

    def test_the_run_is_the_invocation(self):
        yard = fake_async()
        self.play(yard, [["ls"]], {"workspace": "w"})
        [run] = {event["run_id"] for event in yard.events}
        self.assertTrue(run.startswith("e-"), run)
        self.assertNotEqual(yard.events[0]["session_id"], run)

    def run_code(self, yard, executor):
        """What the model was asked at last, after it has said some code."""
        from google.adk.agents import LlmAgent
        from google.adk.runners import InMemoryRunner
        from google.genai.types import Content, Part

        from hookyard_client.adapters.google_adk import hookyard_callbacks

        async def run():
            turns = [[Part(text=f"```python\n{code}\n```")] for code in ["print('SEC' + 'RET')"]] + [[Part(text="done")]]
            model = self.example.Script(model="script", turns=turns)
            agent = LlmAgent(name="builder", model=model, code_executor=executor(yard), **hookyard_callbacks(yard, {"run": "r"}))
            runner = InMemoryRunner(agent=agent, app_name="example")
            session = await runner.session_service.create_session(app_name="example", user_id="u")
            message = Content(role="user", parts=[Part(text="go")])
            async for _ in runner.run_async(user_id="u", session_id=session.id, new_message=message):
                pass
            return str(model.asked[-1])

        return asyncio.run(run())

    def test_code_of_a_model_is_asked_about(self):
        from google.adk.code_executors import UnsafeLocalCodeExecutor

        from hookyard_client.adapters import Halted
        from hookyard_client.adapters.google_adk import GuardedExecutor

        ran = []

        class Executor(UnsafeLocalCodeExecutor):
            def execute_code(self, context, given):
                ran.append(given.code)
                return super().execute_code(context, given)

        def guarded(yard):
            return GuardedExecutor(yard, Executor(), {"run": "r"})

        code, block, halt = "print('SEC' + 'RET')", {"verdict": "block", "reason": "no code"}, {"verdict": "halt", "reason": "enough"}
        # What hooks say, which code ran, and what the model is told.
        for rules, expected, told in [
            ({}, [code], "SECRET"),
            ({"before_tool_dispatch": block}, [], "no code"),
            ({"before_tool_dispatch": {"verdict": "ask", "reason": "who?"}}, [], "who?"),
            ({"before_tool_dispatch": away}, [], "nobody is there"),
            ({"before_tool_dispatch": {"patched": {"tool_input": {"code": "print(2)"}}}}, ["print(2)"], "2"),
            ({"after_tool_dispatch": block}, [code], "no code"),
            ({"after_tool_dispatch": away}, [code], "nobody is there"),
            ({"after_tool_dispatch": {"patched": {"tool_output": {}}}}, [code], "another form"),
            ({"after_tool_dispatch": {"patched": {"tool_output": {"stdout": "less", "stderr": ""}}}}, [code], "less"),
        ]:
            with self.subTest(rules=rules):
                ran.clear()
                yard = fake_async(rules)
                asked = self.run_code(yard, guarded)
                self.assertEqual(ran, expected)
                self.assertIn(told, asked)
                self.assertEqual("SECRET" in asked, told == "SECRET")
                events = [(event["tool_name"], event["tool_input"]) for event in yard.events if event["event"].endswith("_dispatch")]
                self.assertEqual(events[0], ("code_execution", {"code": code}))
        for kind in ("before_tool_dispatch", "after_tool_dispatch"):
            with self.assertRaisesRegex(Halted, "enough"):
                self.run_code(fake_async({kind: halt}), guarded)
        ran.clear()
        with self.assertRaisesRegex(TypeError, "Executor runs code without a question"):
            self.run_code(fake_async(), lambda _: Executor())
        self.assertEqual(ran, [])

    def test_a_tool_that_yields_does_not_run_in_a_live_run(self):
        from contextlib import asynccontextmanager

        from google.adk.agents import LlmAgent
        from google.adk.agents.live_request_queue import LiveRequestQueue
        from google.adk.models import LlmResponse
        from google.adk.models.base_llm_connection import BaseLlmConnection
        from google.adk.runners import InMemoryRunner
        from google.genai.types import Content, FunctionCall, Part

        from hookyard_client.adapters.google_adk import hookyard_callbacks

        class Connection(BaseLlmConnection):
            """Calls the tool once it is asked, and keeps what it is told."""

            def __init__(self):
                self.told, self.answers = asyncio.Queue(), asyncio.Queue()

            async def send_content(self, content, **_):
                [part] = content.parts
                if part.function_response:
                    return await self.told.put(part.function_response.response)
                call = FunctionCall(name="bash", args={"command": "ls"}, id="call-0-0")
                await self.answers.put(LlmResponse(content=Content(role="model", parts=[Part(function_call=call)])))

            async def receive(self):
                while True:
                    yield await self.answers.get()

            async def send_history(self, _):
                pass

            async def send_realtime(self, _):
                pass

            async def close(self):
                pass

        async def told(bash):
            connection = Connection()

            class Model(self.example.Script):
                @asynccontextmanager
                async def connect(self, _):
                    yield connection

            bash.__name__ = "bash"
            agent = LlmAgent(name="builder", model=Model(model="script"), tools=[bash], **hookyard_callbacks(fake_async(), {"run": "r"}))
            runner = InMemoryRunner(agent=agent, app_name="example")
            session = await runner.session_service.create_session(app_name="example", user_id="u")
            queue = LiveRequestQueue()
            queue.send_content(Content(role="user", parts=[Part(text="go")]))

            async def run():
                async for _ in runner.run_live(user_id="u", session_id=session.id, live_request_queue=queue):
                    pass

            task = asyncio.create_task(run())
            try:
                return str(await asyncio.wait_for(connection.told.get(), 20))
            finally:
                task.cancel()

        ran = []

        async def yields(command: str):
            """Runs a command."""
            ran.append(command)
            yield "said"

        async def returns(command: str) -> str:
            """Runs a command."""
            ran.append(command)
            return "said"

        self.assertIn("cannot see what this tool yields", asyncio.run(told(yields)))
        self.assertEqual(ran, [])
        self.assertIn("said", asyncio.run(told(returns)))


class ClaudeAgentSdk(Adapter, unittest.TestCase):
    name, module = "claude_sdk", "claude_agent_sdk"
    # The tool is one of a server of MCP, and the run is the session.
    tool, lacks = "mcp__host__bash", ("model", "pause", "place")

    def test_outputs_that_are_kept_from_the_model(self):
        def patch(output):
            return {"patched": {"tool_output": output}}

        def bash(command):
            return {"name": "Bash", "input": {"command": command, "description": "a test"}}

        # The shell puts it together, so that it is in the output alone.
        shown, fails = bash("echo SEC''RET"), bash("echo SEC''RET; exit 3")
        file = daemon.path / "secret.txt"
        read = {"name": "Read", "input": {"file_path": str(file)}}
        file.write_text("SEC" + "RET of a file\n")
        write = {"name": "Write", "input": {"content": "new"}}
        block = {"verdict": "block", "reason": "not for models"}
        bare = {"stdout": "changed", "stderr": "", "interrupted": False, "isImage": False, "noOutputExpected": False}
        unfit, none = "^a hook changed the output into another form", "hookyard gave no verdict: nobody is there"
        # The call, what hooks say, what the model is told, and the end.
        for call, rules, said, end in [
            (shown, {"after_tool_dispatch": block}, "^not for models$", "^done$"),
            (read, {"after_tool_dispatch": {**block, "reason": "not\nthis"}}, "^1\tnot\n2\tthis$", "^done$"),
            (shown, {"after_tool_dispatch": {"verdict": "halt", "reason": "enough"}}, None, "^halted: enough$"),
            (shown, {"after_tool_dispatch": away}, none, "^done$"),
            (shown, {"after_tool_dispatch": patch(bare)}, "^changed$", "^done$"),
            (shown, {"after_tool_dispatch": patch({})}, unfit, "^done$"),
            ("ls", {"after_tool_dispatch": patch(None)}, unfit, "^done$"),
            (shown, {"after_tool_dispatch": patch({"stdout": "changed", "stderr": ""})}, unfit, "^done$"),
            (fails, {"tool_failed": block}, None, "^halted: not for models$"),
            (fails, {"tool_failed": away}, None, none),
            (write, {"after_tool_dispatch": block}, None, "^halted: not for models$"),
        ]:
            with self.subTest(call=call, rules=rules):
                requests = []
                for more in [], ["and then?", "/compact"]:
                    write["input"]["file_path"] = str(daemon.path / f"new-{len(more)}.txt")
                    played = self.play(fake_async(rules), [[call]], more=more)
                    self.assertNotIn("SECRET", played["asked"])
                    requests.append(len(json.loads(played["asked"])))
                    if not more:
                        self.assertRegex(played["ended"], end)
                        told = played["told"]
                        self.assertRegex(told[0], said) if said else self.assertEqual(told, [])
                # Of a session that is over, nothing more goes to the model.
                self.assertEqual(requests[1] > requests[0], end == "^done$")

    def test_a_failure_that_hooks_let_pass_is_told(self):
        yard = fake_async()
        call = {"name": "Bash", "input": {"command": "echo SEC''RET; exit 3", "description": "a test"}}
        self.assertRegex(self.play(yard, [[call]])["told"][0], "^Exit code 3\nSECRET")
        [error] = [event["error"] for event in yard.events if event["event"] == "tool_failed"]
        self.assertEqual(error, "Exit code 3\nSECRET")


class Sizes(unittest.TestCase):
    def test_an_adapter_has_at_most_fifty_lines_of_code(self):
        paths = [*CLIENTS.glob("python/hookyard_client/adapters/*.py"), *CLIENTS.glob("typescript/src/adapters/*.ts")]
        self.assertGreater(len(paths), 10)
        for path in paths:
            text = re.sub(r'"""[^"]*"""|/\*.*?\*/', "", path.read_text(), flags=re.S)
            lines = [line for line in text.splitlines() if line.strip() and not line.strip().startswith(("#", "//"))]
            self.assertLessEqual(len(lines), 50, path)


def setUpModule():
    global daemon
    daemon = Daemon("frameworks")
    daemon.start()


def tearDownModule():
    daemon.remove()


if __name__ == "__main__":
    unittest.main()
