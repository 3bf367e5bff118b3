#!/bin/sh
sleep 0.1
cat <<'END'
{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow", "modifiedInput": {"command": "npm ci"}}}
END
