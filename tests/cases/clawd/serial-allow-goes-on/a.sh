#!/bin/sh
cat <<'END'
{"permissionDecision": "allow", "permissionDecisionReason": "first"}
END
