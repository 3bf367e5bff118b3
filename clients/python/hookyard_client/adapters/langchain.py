"""A middleware for agents of LangChain that asks hookyard: `create_agent(middleware=[HookyardMiddleware(yard, {"run": "run-1"})])`."""

from __future__ import annotations

import json
from typing import Any, Union

from langchain.agents.middleware import AgentMiddleware  # type: ignore[import-not-found, unused-ignore]
from langchain.messages import AIMessage, SystemMessage, ToolMessage  # type: ignore[import-not-found, unused-ignore]
from langchain_core.messages import messages_from_dict, messages_to_dict  # type: ignore[import-not-found, unused-ignore]
from langgraph.types import interrupt  # type: ignore[import-not-found, unused-ignore]

from .._asyncio import AsyncHookyard
from .._client import Hookyard
from ._shared import Place, Steps, drive, drive_async, jsonable, place_of, refusal


class HookyardMiddleware(AgentMiddleware):  # type: ignore[misc, unused-ignore]
    """Asks before each call of a tool, about its output, and before each call of a model. `place` may be a function of the runtime."""

    def __init__(self, yard: Union[Hookyard, AsyncHookyard], place: Place) -> None:
        super().__init__()
        self._yard, self._place = yard, place

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        return drive(self._tool(request, handler))

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        return await drive_async(self._tool(request, handler))

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return drive(self._model(request, handler))

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await drive_async(self._model(request, handler))

    def _tool(self, request: Any, handler: Any) -> Steps:
        name, args, call = (request.tool_call[key] for key in ("name", "args", "id"))
        where = place_of(self._place, request.runtime)
        outcome = yield self._yard.before_tool_dispatch(**where, tool={"name": name, "input": args, "id": call})
        approval = {"type": "tool_approval", "tool_call_id": call, "name": name, "args": outcome.payload, "description": outcome.reason}
        # Ends this step of the graph at first. It is taken again with the answer of the person, and asks hookyard again.
        is_approved = outcome.verdict == "ask" and interrupt(approval) == {"type": "approve", "tool_call_id": call}
        if refused := refusal(outcome, is_approved):
            return ToolMessage(refused, name=name, tool_call_id=call, status="error")
        result = yield handler(request.override(tool_call={**request.tool_call, "args": outcome.payload}))
        # Else there are commands to the graph, which stay as they are.
        is_message = isinstance(result, ToolMessage)
        output = jsonable([_said(part) for part in result] if isinstance(result, list) else _said(result))
        after = yield self._yard.after_tool_dispatch(**where, tool={"name": name, "input": outcome.payload, "id": call}, output=output)
        refused = refusal(after)
        if refused or (after.patched and not is_message):
            return ToolMessage(refused or "a hook changed what cannot be changed", name=name, tool_call_id=call, status="error")
        return result.model_copy(update={"content": _content(after.payload)}) if after.patched else result

    def _model(self, request: Any, handler: Any) -> Steps:
        given = {"system": request.system_prompt, "messages": jsonable(messages_to_dict(request.messages))}
        name = getattr(request.model, "model_name", None) or request.model.get_name()
        outcome = yield self._yard.before_model_call(**place_of(self._place, request.runtime), model=name, request=given)
        if refused := refusal(outcome):
            return AIMessage(refused)
        if outcome.patched:
            system, messages = outcome.payload["system"], messages_from_dict(outcome.payload["messages"])
            request = request.override(messages=messages, system_message=SystemMessage(system) if system else None)
        return (yield handler(request))


def _said(result: Any) -> Any:
    return result.content if isinstance(result, ToolMessage) else getattr(result, "update", None)


def _content(output: Any) -> Any:
    """An output as a message can have it: a text, blocks, or the JSON of anything else."""
    is_blocks = isinstance(output, list) and all(isinstance(part, dict) and "type" in part for part in output)
    return output if isinstance(output, str) or is_blocks else json.dumps(output)
