#!/bin/sh
cat <<'END'
{"continue": false, "stopReason": "enough", "decision": "deny", "reason": "no"}
END
