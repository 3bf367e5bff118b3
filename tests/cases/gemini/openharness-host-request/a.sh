#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"llm_request": {"model": "small"}}}
END
