#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "from the output"}}
END
exit 2
