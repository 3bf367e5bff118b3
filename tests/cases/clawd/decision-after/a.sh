#!/bin/sh
cat <<'END'
{"permissionDecision": "deny", "permissionDecisionReason": "tests fail"}
END
