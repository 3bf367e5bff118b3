#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"hookEventName": "PreToolUse", "modifiedInput": {"command": "npm ci"}}}
END
