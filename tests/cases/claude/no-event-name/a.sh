#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "no"}}
END
