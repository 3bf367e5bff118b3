#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow", "modifiedInput": {"command": "npm ci"}}}
END
echo 'no' >&2
exit 2
