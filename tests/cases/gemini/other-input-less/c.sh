#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {"command": "npm ci"}}}
END
