#!/bin/sh
cat <<'END'
{"permissionDecision": "allow", "permissionDecisionReason": "because"}
END
