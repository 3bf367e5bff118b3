#!/bin/sh
cat <<'END'
{"systemMessage": "kept", "hookSpecificOutput": {"hookEventName": "PostToolUse", "permissionDecision": "deny"}}
END
