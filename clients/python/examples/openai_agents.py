"""An agent of the OpenAI Agents SDK, with a model that only repeats its script. hookyard stops `rm -rf /`.

    HOOKYARD_LISTEN_SOCKET=… python openai_agents.py
"""

import asyncio
import os

from agents import Agent, RunConfig, Runner, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call

from hookyard_client import connect_async
from hookyard_client.adapters import Halted
from hookyard_client.adapters.openai_agents import guarded, model_filter


async def play(yard, turns, *, prompt="go", approve=None, place=None, run_tool=lambda command: f"ran {command}"):
    """Lets the model call `bash` with the commands of each turn. Returns which ran, what the model was told and asked, and the end."""
    place = place or {"run": os.urandom(8).hex(), "cwd": os.getcwd()}
    ran, ended = [], None

    @function_tool
    def bash(command: str) -> str:
        ran.append(command)
        return run_tool(command)

    calls = [[function_call("bash", {"command": command}, call_id=f"call-{turn}-{number}") for number, command in enumerate(commands)]
             for turn, commands in enumerate(turns)]
    model = ScriptedModel([*calls, [assistant_message("done")]])
    agent = Agent(name="builder", model=model, tools=guarded(yard, [bash], place))
    config = RunConfig(tracing_disabled=True, call_model_input_filter=model_filter(yard, place))
    try:
        result = await Runner.run(agent, prompt, run_config=config)
        while result.interruptions and approve is not None:
            state = result.to_state()
            for call in result.interruptions:
                state.approve(call) if approve else state.reject(call)
            result = await Runner.run(agent, state, run_config=config)
        ended = "waits" if result.interruptions else result.final_output
    except Halted as halt:
        ended = f"halted: {halt}"
    inputs = [item for item in model.last_call.input if isinstance(item, dict)] if model.last_call else []
    told = [item["output"] for item in inputs if item.get("type") == "function_call_output"]
    return {"ran": ran, "told": told, "ended": ended, "asked": str(model.first_call and model.first_call.input)}


async def main():
    async with connect_async() as yard:
        played = await play(yard, [["rm -rf /"], ["ls"]])
        print("ran:", *played["ran"])
        print("told:", *played["told"], sep="\n  ")


if __name__ == "__main__":
    asyncio.run(main())
