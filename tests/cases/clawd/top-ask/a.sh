#!/bin/sh
cat <<'END'
{"permissionDecision": "ask", "permissionDecisionReason": "because"}
END
