#!/bin/sh
cat <<'END'
{"decision": "approve", "reason": "old style"}
END
