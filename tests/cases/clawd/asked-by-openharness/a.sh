#!/bin/sh
cat <<'END'
{"permissionDecision": "ask", "permissionDecisionReason": "sure?"}
END
