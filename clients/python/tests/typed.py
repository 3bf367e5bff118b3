"""What a type checker must accept, and what it must not. It is checked and never run."""

from typing_extensions import assert_never, assert_type

from hookyard_client import Outcome, Verdict, connect, connect_async, fake
from hookyard_client.worker import serve


def act(verdict: Verdict) -> str:
    """A new verdict would be an error here."""
    if verdict == "proceed" or verdict == "allow":
        return "go on"
    if verdict == "ask":
        return "ask a person"
    if verdict == "block":
        return "tell the model"
    if verdict == "halt":
        return "end the run"
    assert_never(verdict)


def threads() -> None:
    with connect(lines="/run/hookyard/hookyard-lines.sock", if_down="block") as yard:
        outcome = yard.before_tool_dispatch(run="r", tool={"name": "Bash", "input": {}}, timeout=5, cwd="/srv/shop")
        assert_type(outcome, Outcome)
        outcome.verdict == "deny"  # type: ignore[comparison-overlap]
        yard.before_tool_dispatch(run="r", tool={"input": {}})  # type: ignore[typeddict-item]
        yard.agent_stopping(run="r", timout=5)  # type: ignore[call-arg]
    connect(if_down="alow")  # type: ignore[arg-type]
    fake({"agent_stopping": {"verdict": "block"}})


async def asyncio() -> None:
    async with connect_async() as yard:
        assert_type(await yard.agent_stopping(run="r"), Outcome)


def worker() -> None:
    serve(lambda envelope: {"decision": "block"} if envelope["tool_name"] == "Bash" else None, threads=8)
    serve(lambda envelope: "block")  # type: ignore[arg-type, return-value]
