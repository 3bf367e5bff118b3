#!/bin/sh
cat <<'END'
{"decision": "deny", "reason": "one"}
END
