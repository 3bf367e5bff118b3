#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"llm_response": {"candidates": [{"content": {"role": "model", "parts": ["bye"]}}]}}}
END
