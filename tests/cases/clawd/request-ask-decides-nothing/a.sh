#!/bin/sh
cat <<'END'
{"decision": "ask", "reason": "a"}
END
