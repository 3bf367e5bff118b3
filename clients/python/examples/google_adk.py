"""An agent of Google's ADK, with a model that only repeats its script. hookyard stops `rm -rf /`.

    HOOKYARD_LISTEN_SOCKET=… python google_adk.py
"""

import asyncio
import os

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai.types import Content, FunctionCall, FunctionResponse, Part

from hookyard_client import connect_async
from hookyard_client.adapters import Halted
from hookyard_client.adapters.google_adk import hookyard_callbacks


class Script(BaseLlm):
    """Says what it is given, and keeps what it was asked."""

    turns: list = []
    asked: list = []

    async def generate_content_async(self, llm_request, stream=False):
        self.asked.append([*llm_request.contents])
        yield LlmResponse(content=Content(role="model", parts=self.turns.pop(0)))


async def play(yard, turns, *, prompt="go", approve=None, place=None, run_tool=lambda command: f"ran {command}"):
    """Lets the model call `bash` with the commands of each turn. Returns which ran, what the model was told and asked, and the end."""
    place = place or {"cwd": os.getcwd()}
    ran, ended = [], None

    def bash(command: str) -> str:
        """Runs a command."""
        ran.append(command)
        return run_tool(command)

    calls = [[Part(function_call=FunctionCall(name="bash", args={"command": command}, id=f"call-{turn}-{number}"))
              for number, command in enumerate(commands)] for turn, commands in enumerate(turns)]
    model = Script(model="script", turns=[*calls, [Part(text="done")]])
    agent = LlmAgent(name="builder", model=model, tools=[bash], **hookyard_callbacks(yard, place))
    runner = InMemoryRunner(agent=agent, app_name="example")
    session = await runner.session_service.create_session(app_name="example", user_id="u")
    message = Content(role="user", parts=[Part(text=prompt)])
    try:
        while message:
            events = [event async for event in runner.run_async(user_id="u", session_id=session.id, new_message=message)]
            waits = [call for event in events for call in event.get_function_calls() if call.name == "adk_request_confirmation"]
            answers = [FunctionResponse(id=call.id, name=call.name, response={"confirmed": approve}) for call in waits]
            message = Content(role="user", parts=[Part(function_response=answer) for answer in answers])
            message = message if waits and approve is not None else None
        ended = "waits" if waits else events[-1].content.parts[0].text
    except Halted as halt:
        ended = f"halted: {halt}"
    parts = [part for content in (model.asked or [[]])[-1] for part in content.parts]
    told = [next(iter(part.function_response.response.values())) for part in parts if part.function_response]
    return {"ran": ran, "told": told, "ended": ended, "asked": str(model.asked[:1])}


async def main():
    async with connect_async() as yard:
        played = await play(yard, [["rm -rf /"], ["ls"]])
        print("ran:", *played["ran"])
        print("told:", *played["told"], sep="\n  ")


if __name__ == "__main__":
    asyncio.run(main())
