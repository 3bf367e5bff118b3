#!/bin/sh
cat <<'END'
{"decision": "deny", "reason": "two"}
END
