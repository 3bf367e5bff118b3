#!/bin/sh
cat <<'END'
{"decision": "deny", "reason": "cached", "hookSpecificOutput": {"llm_response": {"candidates": [{"content": {"role": "model", "parts": ["cached"]}}]}}}
END
