#!/bin/sh
cat <<'END'
{"decision": "block", "reason": "no"}
END
