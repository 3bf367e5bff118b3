#!/bin/sh
cat <<'END'
{"decision": "block", "reason": "say what to fix"}
END
