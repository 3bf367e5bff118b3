#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"llm_request": {"model": "a"}, "llm_response": {"text": "x"}}}
END
