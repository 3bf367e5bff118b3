#!/bin/sh
cat <<'END'
{"decision": "deny", "reason": "a"}
END
