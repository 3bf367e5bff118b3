#!/bin/sh
cat <<'END'
{"permissionDecision": "deny", "permissionDecisionReason": "first"}
END
