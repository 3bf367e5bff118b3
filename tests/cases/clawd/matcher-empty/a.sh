#!/bin/sh
cat <<'END'
{"permissionDecision": "deny", "permissionDecisionReason": "matched"}
END
