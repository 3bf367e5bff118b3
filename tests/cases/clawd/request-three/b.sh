#!/bin/sh
cat <<'END'
{"decision": "ask", "reason": "b"}
END
