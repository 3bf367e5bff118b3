#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"tool_input": {"command": "npm ci"}}}
END
