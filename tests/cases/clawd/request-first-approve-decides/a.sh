#!/bin/sh
cat <<'END'
{"decision": "approve", "reason": "a"}
END
