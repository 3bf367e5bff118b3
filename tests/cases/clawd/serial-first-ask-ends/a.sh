#!/bin/sh
cat <<'END'
{"permissionDecision": "ask", "permissionDecisionReason": "first"}
END
