#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"tool_input": "npm ci"}}
END
