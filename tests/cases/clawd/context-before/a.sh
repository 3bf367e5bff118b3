#!/bin/sh
cat <<'END'
{"permissionDecision": "ask", "permissionDecisionReason": "sure?", "additionalContext": "it is slow"}
END
