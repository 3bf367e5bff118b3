#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"patch": {"tool_input": {"command": "npm ci"}}}}
END
