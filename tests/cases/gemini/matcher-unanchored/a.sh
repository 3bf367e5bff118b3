#!/bin/sh
cat <<'END'
{"decision": "deny", "reason": "no"}
END
