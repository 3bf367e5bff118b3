"""Hooks for the Claude Agent SDK that ask hookyard: `ClaudeAgentOptions(hooks=claude_hooks(yard))`."""

from __future__ import annotations

from typing import Any, Optional

from claude_agent_sdk import HookMatcher  # type: ignore[import-not-found, unused-ignore]

from .._asyncio import AsyncHookyard
from .._outcome import Outcome
from ._claude_outputs import Outputs
from ._shared import notes_of, told

_DECISIONS = {"allow": "allow", "ask": "ask", "block": "deny", "halt": "deny"}


def claude_hooks(yard: AsyncHookyard) -> dict[Any, list[Any]]:
    """Asks before and after each tool, and about each prompt. The run of an event is the session."""
    outputs = Outputs()

    async def before(event: Any, *_: Any) -> Any:
        outcome = await yard.before_tool_dispatch(**_call(event))
        decision = _DECISIONS.get(outcome.verdict)
        reason = told(outcome) if decision == "deny" else outcome.reason
        words = {"permissionDecision": decision, "permissionDecisionReason": reason, "updatedInput": outcome.patched.get("tool_input")}
        return _answer(event, outcome, words)

    async def after(event: Any, *_: Any) -> Any:
        outputs.hold(event)
        if event["hook_event_name"] == "PostToolUse":
            outcome = await yard.after_tool_dispatch(**_call(event), output=event["tool_response"])
        else:
            outcome = await yard.tool_failed(**_call(event), error=event["error"])
        # What is halted ends after the other calls of the turn, where the SDK says why.
        return _answer(event, outcome, {"updatedToolOutput": outputs.judged(event, outcome)}, may_end=False)

    async def batch(event: Any, *_: Any) -> Any:
        # Before the model gets the outputs of a turn.
        return _ended(outputs.over(event))

    async def prompt(event: Any, *_: Any) -> Any:
        outcome = await yard.prompt_submitted(run=event["session_id"], cwd=event["cwd"], prompt=event["prompt"])
        # The SDK has no way to change a prompt.
        changed = "a hook changed the prompt" if "prompt" in outcome.patched else None
        return _answer(event, outcome, {}) | _blocked(outputs.over(event) or changed if outcome.proceeds else told(outcome))

    async def compact(event: Any, *_: Any) -> Any:
        return _blocked(outputs.over(event))

    hooks = {"PreToolUse": before, "PostToolUse": after, "PostToolUseFailure": after, "PostToolBatch": batch,
             "UserPromptSubmit": prompt, "PreCompact": compact}
    # In seconds. The SDK goes on after it, so it is longer than any event takes.
    return {name: [HookMatcher(hooks=[ask], timeout=3600.0, on_failure="block")] for name, ask in hooks.items()}


def _call(event: Any) -> dict[str, Any]:
    tool = {"name": event["tool_name"], "input": event["tool_input"], "id": event["tool_use_id"]}
    return {"run": event["session_id"], "cwd": event["cwd"], "tool": tool}


def _blocked(reason: Optional[str]) -> dict[str, Any]:
    return {} if reason is None else {"decision": "block", "reason": reason}


def _ended(reason: Optional[str]) -> dict[str, Any]:
    return {} if reason is None else {"continue_": False, "stopReason": reason, "systemMessage": reason}


def _answer(event: Any, outcome: Outcome, words: dict[str, Any], may_end: bool = True) -> dict[str, Any]:
    """What the SDK is told: an outcome, and what is special to the event."""
    end = _ended(outcome.reason or "a hook ended the run") if may_end and outcome.verdict == "halt" else {}
    if shown := notes_of(outcome, for_model=False):
        end["systemMessage"] = "\n".join([*filter(None, [end.get("systemMessage")]), *shown])
    # A refusal has the notes in its reason.
    if outcome.proceeds or outcome.verdict == "ask":
        words["additionalContext"] = "\n".join(notes_of(outcome)) or None
    specific = {name: value for name, value in words.items() if value is not None}
    return end | {"hookSpecificOutput": {"hookEventName": event["hook_event_name"], **specific}}
