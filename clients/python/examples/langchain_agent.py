"""An agent of LangChain, with a model that only repeats its script. hookyard stops `rm -rf /`.

    HOOKYARD_LISTEN_SOCKET=… python langchain_agent.py
"""

import asyncio
import os

from langchain.agents import create_agent
from langchain.messages import AIMessage, ToolMessage
from langchain.tools import tool
from langchain_core.language_models import GenericFakeChatModel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from hookyard_client import connect_async
from hookyard_client.adapters import Halted
from hookyard_client.adapters.langchain import HookyardMiddleware


class Script(GenericFakeChatModel):
    """Says what it is given, and keeps what it was asked."""

    asked: list = []

    def bind_tools(self, tools, **_):
        return self

    def _generate(self, messages, *rest, **options):
        self.asked.append([message for message in messages])
        return super()._generate(messages, *rest, **options)


async def play(yard, turns, *, prompt="go", approve=None, place=None, run_tool=lambda command: f"ran {command}"):
    """Lets the model call `bash` with the commands of each turn. Returns which ran, what the model was told and asked, and the end."""
    place = place or {"run": os.urandom(8).hex(), "cwd": os.getcwd()}
    ran = []

    @tool
    def bash(command: str) -> str:
        """Runs a command."""
        ran.append(command)
        return run_tool(command)

    calls = [[{"name": "bash", "args": {"command": command}, "id": f"call-{turn}-{number}"} for number, command in enumerate(commands)]
             for turn, commands in enumerate(turns)]
    model = Script(messages=iter([*(AIMessage("", tool_calls=calls) for calls in calls), AIMessage("done")]))
    # A person is asked by an interrupt, for which the graph needs a checkpointer.
    agent = create_agent(model, tools=[bash], middleware=[HookyardMiddleware(yard, place)], checkpointer=InMemorySaver())
    invoke = agent.ainvoke if asyncio.iscoroutinefunction(type(yard).dispatch) else in_thread(agent.invoke)
    config = {"configurable": {"thread_id": "thread-1"}}
    try:
        state = await invoke({"messages": [("user", prompt)]}, config)
        while "__interrupt__" in state and approve is not None:
            kind = "approve" if approve else "reject"
            answers = {wait.id: {"type": kind, "tool_call_id": wait.value["tool_call_id"]} for wait in state["__interrupt__"]}
            state = await invoke(Command(resume=answers), config)
        ended = "waits" if "__interrupt__" in state else state["messages"][-1].content
    except Halted as halt:
        ended = f"halted: {halt}"
    told = [message.content for message in (model.asked or [[]])[-1] if isinstance(message, ToolMessage)]
    return {"ran": ran, "told": told, "ended": ended, "asked": str(model.asked[:1])}


def in_thread(invoke):
    return lambda *words: asyncio.to_thread(invoke, *words)


async def main():
    async with connect_async() as yard:
        played = await play(yard, [["rm -rf /"], ["ls"]])
        print("ran:", *played["ran"])
        print("told:", *played["told"], sep="\n  ")


if __name__ == "__main__":
    asyncio.run(main())
