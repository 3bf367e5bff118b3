#!/usr/bin/env python3
"""How long a tool call of Claude Code takes with one guard written in Node: without it, run by Claude Code, by hookyard, and by
hookyard in mode `prespawn`.

    tests/agents/latency.py [claude [hookyard]]

The model asks for one small file again and again, and thinks for a while before it does; a call is from one answer of the model to
the next request of the agent. The sessions alternate, and the median of all calls is printed. Use a release build on a quiet machine.
"""

import json
import statistics
import sys

from compare import Session, arguments

AGENT, HOOKYARD, _ = arguments("tests/agents/latency.py [claude [hookyard]]", "claude")
CALLS = 40
ROUNDS = 3
# Seconds; a model takes longer, and a program that `prespawn` starts anew is there by then.
THINKS = 0.25
GUARD = """
let text = '';
process.stdin.on('data', (part) => { text += part; }).on('end', () => {
    require('fs').appendFileSync(__dirname + '/guarded', '.');
    const { tool_input } = JSON.parse(text);
    if (/secret/.test(tool_input.file_path)) {
        console.error('secrets stay unread');
        process.exit(2);
    }
});
"""


def session(variant):
    """The durations of the calls of one session, in milliseconds."""
    with Session(HOOKYARD) as place:
        guard = place.place / "guard.js"
        guard.write_text(GUARD)
        (place.project / "small").write_text("small\n")
        hooks = {"PreToolUse": [{"matcher": "Read", "hooks": [{"type": "command", "command": f"node {guard}"}]}]}
        settings = place.home / ".claude/settings.json"
        settings.parent.mkdir()
        if variant in ("hookyard", "prespawn"):
            own = place.place / "elsewhere/.claude/settings.json"
            own.parent.mkdir(parents=True)
            own.write_text(json.dumps({"hooks": hooks}))
            mode = json.dumps({f"node {guard}": {"mode": "prespawn"}}) if variant == "prespawn" else "{}"
            relay = place.relay("claude", "watch=false", f"handlers={mode}")
            hooks["PreToolUse"][0]["hooks"][0]["command"] = relay
        settings.write_text(json.dumps({} if variant == "no hook" else {"hooks": hooks}))
        call = {"type": "tool_use", "name": "Read", "input": {"file_path": str(place.project / "small")}}
        port = place.model([[{**call, "id": f"call_{number}"}] for number in range(CALLS)], THINKS)
        place.run([AGENT, "--dangerously-skip-permissions", "--model", "mock", "-p", "go"], {
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}", "ANTHROPIC_API_KEY": "mock", "IS_SANDBOX": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"})
        at = [request["at"] for request in place.requests()]
        guarded = place.place / "guarded"
        runs = len(guarded.read_text()) if guarded.exists() else 0
        wanted = 0 if variant == "no hook" else CALLS
        if len(at) != CALLS + 1 or runs != wanted:
            sys.exit(f"{variant}: {len(at)} requests and {runs} runs of the guard, in place of {CALLS + 1} and {wanted}")
        # The first calls load what the others use.
        return [1000 * (later - earlier - THINKS) for earlier, later in zip(at[3:], at[4:])]


VARIANTS = {"no hook": [], "claude": [], "hookyard": [], "prespawn": []}
for _ in range(ROUNDS):
    for variant, durations in VARIANTS.items():
        durations += session(variant)
floor = statistics.median(VARIANTS["no hook"])
for variant, durations in VARIANTS.items():
    median = statistics.median(durations)
    print(f"{variant:10} {median:6.1f} ms, the hook {median - floor:6.1f} ms")
