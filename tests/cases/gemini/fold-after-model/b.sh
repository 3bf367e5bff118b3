#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"llm_response": {"text": "two"}}}
END
