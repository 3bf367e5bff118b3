#!/bin/sh
cat <<'END'
{"decision": "block", "reason": "lint it"}
END
