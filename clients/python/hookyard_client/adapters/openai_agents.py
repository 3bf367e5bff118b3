"""Tools for the OpenAI Agents SDK that ask hookyard: `Agent(tools=guarded(yard, [bash], {"run": "run-1"}))`."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Callable

from agents import FunctionTool  # type: ignore[import-not-found, unused-ignore]
from agents.exceptions import AgentsException  # type: ignore[import-not-found, unused-ignore]

from .._asyncio import AsyncHookyard
from ._shared import Halted, Place, jsonable, place_of, refusal


class RunHalted(Halted, AgentsException):  # type: ignore[misc, unused-ignore]
    """`Halted` in the form that the SDK lets out of a run."""


def guarded(yard: AsyncHookyard, tools: list[Any], place: Place) -> list[Any]:
    """The tools, each of which asks before it runs, and about its output. `place` may be a function of the context of the run."""
    if others := [tool for tool in tools if not isinstance(tool, FunctionTool)]:
        raise TypeError(f"hookyard can stand before function tools alone, not before {others[0]!r}")
    return [_guarded(yard, tool, place) for tool in tools]


def model_filter(yard: AsyncHookyard, place: Place) -> Callable[[Any], Any]:
    """For `RunConfig(call_model_input_filter=…)`: asks before each call of a model. The SDK can only end the run if that is blocked."""

    async def ask(data: Any) -> Any:
        request = {"instructions": data.model_data.instructions, "input": jsonable(data.model_data.input)}
        where, model = place_of(place, data.context), str(data.agent.model)
        outcome = await yard.before_model_call(**where, model=model, request=request)
        if refused := refusal(outcome, halted=RunHalted):
            raise RunHalted(refused)
        return replace(data.model_data, **outcome.payload) if "model_request" in outcome.patched else data.model_data

    return ask


def _guarded(yard: AsyncHookyard, tool: Any, place: Place) -> Any:
    def event(context: Any, arguments: Any, call: str) -> dict[str, Any]:
        return {**place_of(place, context.context), "tool": {"name": tool.name, "input": arguments, "id": call}}

    async def needs_approval(context: Any, arguments: Any, call: str) -> bool:
        own = tool.needs_approval
        if own is True or (callable(own) and await own(context, arguments, call)):
            return True
        return (await yard.before_tool_dispatch(**event(context, arguments, call))).verdict == "ask"

    async def invoke(context: Any, text: str) -> Any:
        call = context.tool_call_id
        outcome = await yard.before_tool_dispatch(**event(context, _parsed(text), call))
        if refused := refusal(outcome, bool(context.is_tool_approved(tool.name, call)), RunHalted):
            return refused
        output = await tool.on_invoke_tool(context, json.dumps(outcome.payload) if outcome.patched else text)
        after = await yard.after_tool_dispatch(**event(context, outcome.payload, call), output=jsonable(output))
        return refusal(after, halted=RunHalted) or (after.payload if "tool_output" in after.patched else output)

    return replace(tool, on_invoke_tool=invoke, needs_approval=needs_approval)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        # The tool says to the model what is wrong with it.
        return text
