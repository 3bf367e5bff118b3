#!/bin/sh
cat <<'END'
{"permissionDecision": "deny", "hookSpecificOutput": {"permissionDecision": "allow", "permissionDecisionReason": "inner"}}
END
