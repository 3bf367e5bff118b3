#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"hookEventName": "PostToolUse", "permissionDecision": "deny"}}
END
