"""What Google's ADK runs beside its callbacks: code of a model, and tools that yield in live runs."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import replace
from inspect import isasyncgenfunction
from typing import Any, Coroutine, Optional

from google.adk.agents.readonly_context import ReadonlyContext  # type: ignore[import-not-found, unused-ignore]
from google.adk.code_executors import BaseCodeExecutor, BuiltInCodeExecutor  # type: ignore[import-not-found, unused-ignore]
from google.adk.code_executors.code_execution_utils import CodeExecutionResult  # type: ignore[import-not-found, unused-ignore]

from .._asyncio import AsyncHookyard
from .._outcome import Outcome
from ._shared import Place, place_of, refusal


class GuardedExecutor(BaseCodeExecutor):  # type: ignore[misc, unused-ignore]
    """For `LlmAgent(code_executor=…)`, with another executor: the tool `code_execution` with its `code`, and its `stdout` and `stderr`."""

    _loop: Optional[asyncio.AbstractEventLoop] = None
    _given: Any = None

    def __init__(self, yard: AsyncHookyard, executor: Any, place: Place = {}) -> None:
        super().__init__(**{name: getattr(executor, name) for name in BaseCodeExecutor.model_fields})
        self._given = (yard, executor, place)

    def execute_code(self, invocation_context: Any, code_execution_input: Any) -> Any:
        yard, executor, place = self._given
        context, call = ReadonlyContext(invocation_context), uuid.uuid4().hex
        where = {"run": context.invocation_id, "session": context.session.id, **place_of(place, context)}
        tool = {"name": "code_execution", "input": {"code": code_execution_input.code}, "id": call}
        outcome = self._wait(yard.before_tool_dispatch(**where, tool=tool))
        if refused := refusal(outcome):
            return CodeExecutionResult(stderr=refused)
        result = executor.execute_code(invocation_context, replace(code_execution_input, code=outcome.payload["code"]))
        output = {"stdout": result.stdout, "stderr": result.stderr}
        after = self._wait(yard.after_tool_dispatch(**where, tool={**tool, "input": outcome.payload}, output=output))
        is_fit = isinstance(after.payload, dict) and after.payload.keys() == output.keys()
        if (refused := refusal(after)) or not is_fit:
            return CodeExecutionResult(stderr=refused or "a hook changed the output into another form")
        return replace(result, **after.payload)

    def _wait(self, asked: Coroutine[Any, Any, Outcome]) -> Outcome:
        """The ADK runs code in threads of their own, and the client belongs to the event loop of the agent."""
        if self._loop is None:
            asked.close()
            raise RuntimeError("hookyard cannot be asked before the first call of a model: set `optimize_data_file` to False")
        return asyncio.run_coroutine_threadsafe(asked, self._loop).result()


def check_executor(context: Any) -> None:
    """Raises if code of the model would run without a question."""
    executor = getattr(context.get_invocation_context().agent, "code_executor", None)
    if isinstance(executor, GuardedExecutor):
        executor._loop = asyncio.get_running_loop()
    elif executor is not None and not isinstance(executor, BuiltInCodeExecutor):
        raise TypeError(f"{type(executor).__name__} runs code without a question: give `code_executor` a `GuardedExecutor` with it")


def unseen(tool: Any, context: Any) -> Optional[str]:
    """Why a tool cannot run, or None. In a live run, what it yields goes to the model, and no callback is called."""
    is_live = context.get_invocation_context().live_request_queue is not None
    yields = isasyncgenfunction(getattr(tool, "func", None))
    return "in a live run, hooks cannot see what this tool yields: it does not run" if is_live and yields else None
