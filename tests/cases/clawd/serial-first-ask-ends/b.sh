#!/bin/sh
cat <<'END'
{"permissionDecision": "deny", "permissionDecisionReason": "second"}
END
