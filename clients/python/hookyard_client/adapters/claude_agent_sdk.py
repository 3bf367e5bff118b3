"""Hooks for the Claude Agent SDK that ask hookyard: `ClaudeAgentOptions(hooks=claude_hooks(yard))`."""

from __future__ import annotations

from typing import Any

from claude_agent_sdk import HookMatcher  # type: ignore[import-not-found, unused-ignore]

from .._asyncio import AsyncHookyard
from .._outcome import Outcome

_TIMEOUT = 3600.0
"""In seconds. The SDK goes on after it, so it is longer than any event takes."""

_DECISIONS = {"allow": "allow", "ask": "ask", "block": "deny", "halt": "deny"}


def claude_hooks(yard: AsyncHookyard) -> dict[Any, list[Any]]:
    """Asks before and after each tool, and about each prompt. The run of an event is the session."""

    async def before(event: Any, _: str | None, __: Any) -> Any:
        outcome = await yard.before_tool_dispatch(**_place(event), tool=_tool(event))
        words = {"permissionDecision": _DECISIONS.get(outcome.verdict), "permissionDecisionReason": outcome.reason}
        return _answer(event, outcome, **words, updatedInput=outcome.patched.get("tool_input"))

    async def after(event: Any, _: str | None, __: Any) -> Any:
        outcome = await yard.after_tool_dispatch(**_place(event), tool=_tool(event), output=event["tool_response"])
        return _blocked(outcome) | _answer(event, outcome, updatedToolOutput=outcome.patched.get("tool_output"))

    async def prompt(event: Any, _: str | None, __: Any) -> Any:
        outcome = await yard.prompt_submitted(**_place(event), prompt=event["prompt"])
        # The SDK has no way to change a prompt.
        changed = {"decision": "block", "reason": "a hook changed the prompt"} if "prompt" in outcome.patched else {}
        return changed | _blocked(outcome) | _answer(event, outcome)

    hooks = {"PreToolUse": before, "PostToolUse": after, "UserPromptSubmit": prompt}
    return {name: [HookMatcher(hooks=[hook], timeout=_TIMEOUT, on_failure="block")] for name, hook in hooks.items()}


def _place(event: Any) -> dict[str, Any]:
    return {"run": event["session_id"], "cwd": event["cwd"]}


def _tool(event: Any) -> Any:
    return {"name": event["tool_name"], "input": event["tool_input"], "id": event["tool_use_id"]}


def _blocked(outcome: Outcome) -> dict[str, Any]:
    return {} if outcome.proceeds else {"decision": "block", "reason": outcome.reason or ""}


def _answer(event: Any, outcome: Outcome, **words: Any) -> dict[str, Any]:
    for_model = [note["text"] for note in outcome.notes if note["kind"] == "additional_context"]
    for_person = [note["text"] for note in outcome.notes if note["kind"] != "additional_context"]
    specific = {"additionalContext": "\n".join(for_model) or None, **words}
    specific = {name: value for name, value in specific.items() if value is not None}
    answer: dict[str, Any] = {"hookSpecificOutput": {"hookEventName": event["hook_event_name"], **specific}}
    if for_person:
        answer["systemMessage"] = "\n".join(for_person)
    if outcome.verdict == "halt":
        answer |= {"continue_": False, "stopReason": outcome.reason or ""}
    return answer
