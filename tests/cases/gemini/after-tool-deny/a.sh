#!/bin/sh
cat <<'END'
{"decision": "deny", "reason": "secret"}
END
