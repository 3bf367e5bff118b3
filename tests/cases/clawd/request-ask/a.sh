#!/bin/sh
cat <<'END'
{"decision": "ask", "reason": "because"}
END
