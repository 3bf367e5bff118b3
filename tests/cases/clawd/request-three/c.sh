#!/bin/sh
cat <<'END'
{"decision": "deny", "reason": "c"}
END
