#!/bin/sh
cat <<'END'
{"permissionDecision": "ask", "permissionDecisionReason": "both?", "updatedInput": {"timeout": 1}}
END
