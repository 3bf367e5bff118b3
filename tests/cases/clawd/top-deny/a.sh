#!/bin/sh
cat <<'END'
{"permissionDecision": "deny", "permissionDecisionReason": "because"}
END
