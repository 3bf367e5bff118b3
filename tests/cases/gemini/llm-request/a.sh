#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"llm_request": {"model": "gemini-2.5-flash"}}}
END
