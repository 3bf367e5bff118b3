#!/bin/sh
cat <<'END'
{"decision": "block", "reason": "old style"}
END
