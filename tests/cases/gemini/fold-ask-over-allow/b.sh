#!/bin/sh
cat <<'END'
{"decision": "ask", "reason": "sure?"}
END
