#!/bin/sh
cat <<'END'
{"decision": "deny", "reason": "because"}
END
