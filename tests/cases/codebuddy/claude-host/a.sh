#!/bin/sh
cat > told.json
echo '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow", "modifiedInput": {"command": "npm ci"}}}'
