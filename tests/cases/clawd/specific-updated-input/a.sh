#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"permissionDecision": "allow", "updatedInput": {"command": "npm ci", "cwd": "/srv"}}}
END
