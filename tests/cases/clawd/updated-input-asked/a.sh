#!/bin/sh
cat <<'END'
{"permissionDecision": "ask", "permissionDecisionReason": "changed", "updatedInput": {"command": "npm ci"}}
END
