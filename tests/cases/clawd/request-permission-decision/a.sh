#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "because"}}
END
