"""Which outputs of tools the Claude Agent SDK must keep from the model, and what the model gets in their place."""

from __future__ import annotations

import re
from typing import Any, Optional

from .._outcome import Outcome
from ._shared import told

_UNFIT = "a hook changed the output into another form than the tool's own, which has other keys or types"


class Outputs:
    def __init__(self) -> None:
        # What the model has to get in place of an output, by call.
        self._withheld: dict[str, str] = {}
        # Why a session is over. Its history may have what the model must not get.
        self._over: dict[str, str] = {}

    def hold(self, event: Any) -> None:
        """Withholds an output, until hooks have judged it."""
        self._withheld[event["tool_use_id"]] = "hookyard gave no verdict"

    def judged(self, event: Any, outcome: Outcome) -> Any:
        """What the model gets in place of an output, or None: the output."""
        call, output = event["tool_use_id"], event.get("tool_response")
        if outcome.verdict == "halt":
            self._over[event["session_id"]] = told(outcome)
        if outcome.proceeds and ("tool_output" not in outcome.patched or _is_alike(output, outcome.patched["tool_output"])):
            del self._withheld[call]
            return outcome.patched.get("tool_output")
        self._withheld[call] = text = _UNFIT if outcome.proceeds else told(outcome)
        return None if output is None else _stand_in(output, text)

    def over(self, event: Any) -> Optional[str]:
        """Why the session is over, or None. The SDK does not say whether it took a replacement, but what the model gets."""
        for call in event.get("tool_calls", []):
            text = self._withheld.pop(call["tool_use_id"], None)
            if text is not None and _plain(call.get("tool_response")) != _plain(text):
                self._over[event["session_id"]] = text
        return self._over.get(event["session_id"])


def _stand_in(output: Any, text: str) -> Any:
    """A text in the form of the output of `Bash`, of `Read` or of a tool of MCP. Of other tools, the SDK takes none."""
    keys = output.keys() if isinstance(output, dict) else ()
    if "stdout" in keys:
        return {"stdout": text, "stderr": "", "interrupted": False}
    file = {"filePath": "", "content": text, "numLines": 1, "startLine": 1, "totalLines": 1}
    return {"type": "text", "file": file} if "file" in keys else text


def _is_alike(output: Any, other: Any) -> bool:
    """Whether the SDK takes an output in place of another: any of a tool of MCP, else one with the same keys and types."""
    return other is not None and (isinstance(output, (list, str)) or _form(output) == _form(other))


def _form(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: part if key == "type" else _form(part) for key, part in value.items()}
    return [_form(part) for part in value] if isinstance(value, list) else type(value)


def _plain(text: Any) -> str:
    """Without the numbers of lines that `Read` puts before them."""
    return re.sub(r"(?m)^ *\d+[\t→]", "", str(text)).strip()
