"""Callbacks for agents of Google's ADK that ask hookyard: `LlmAgent(**hookyard_callbacks(yard))`."""

from __future__ import annotations

from typing import Any, Callable, Optional

from google.adk.models import LlmResponse  # type: ignore[import-not-found, unused-ignore]
from google.genai import types  # type: ignore[import-not-found, unused-ignore]

from .._asyncio import AsyncHookyard
from .._events import ToolCall
from ._google_adk_unseen import GuardedExecutor, check_executor, unseen
from ._shared import Place, jsonable, place_of, refusal

__all__ = ["GuardedExecutor", "hookyard_callbacks"]

class _Refusal(dict[str, Any]):
    """The answer for a tool that did not run. The ADK calls the callbacks after tools for it, too."""


def hookyard_callbacks(yard: AsyncHookyard, place: Place = {}) -> dict[str, Callable[..., Any]]:
    """Asks before and after each tool, and before each call of a model. The run of an event is the invocation, unless `place` says
    another; it may be a function of the context."""

    def where(context: Any) -> dict[str, Any]:
        return {"run": context.invocation_id, "session": context.session.id, **place_of(place, context)}

    def called(tool: Any, args: dict[str, Any], context: Any) -> ToolCall:
        return {"name": tool.name, "input": jsonable(args), "id": context.function_call_id}

    async def before_tool(tool: Any, args: dict[str, Any], tool_context: Any) -> Optional[dict[str, Any]]:
        if refused := unseen(tool, tool_context):
            return _Refusal(error=refused)
        outcome = await yard.before_tool_dispatch(**where(tool_context), tool=called(tool, args, tool_context))
        confirmation = tool_context.tool_confirmation
        if outcome.verdict == "ask" and confirmation is None:
            tool_context.request_confirmation(hint=outcome.reason)
            tool_context.actions.skip_summarization = True
        if refused := refusal(outcome, confirmation is not None and confirmation.confirmed):
            return _Refusal(error=refused)
        if outcome.patched:
            # What the tool is called with.
            args.clear()
            args.update(outcome.payload)
        return None

    async def after_tool(tool: Any, args: dict[str, Any], tool_context: Any, tool_response: Any) -> Optional[dict[str, Any]]:
        if isinstance(tool_response, _Refusal):
            return None
        outcome = await yard.after_tool_dispatch(**where(tool_context), tool=called(tool, args, tool_context), output=jsonable(tool_response))
        if refused := refusal(outcome):
            return {"error": refused}
        if not outcome.patched:
            return None
        return outcome.payload if isinstance(outcome.payload, dict) else {"result": outcome.payload}

    async def before_model(callback_context: Any, llm_request: Any) -> Any:
        check_executor(callback_context)
        config = llm_request.config
        given = {"system_instruction": config.system_instruction, "contents": llm_request.contents}
        outcome = await yard.before_model_call(**where(callback_context), model=str(llm_request.model), request=jsonable(given))
        if refused := refusal(outcome):
            return LlmResponse(content=types.Content(role="model", parts=[types.Part(text=refused)]))
        if outcome.patched:
            config.system_instruction = outcome.payload.get("system_instruction")
            llm_request.contents = [types.Content.model_validate(content) for content in outcome.payload["contents"]]
        return None

    return {"before_tool_callback": before_tool, "after_tool_callback": after_tool, "before_model_callback": before_model}
