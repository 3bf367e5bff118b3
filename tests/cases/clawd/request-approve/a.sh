#!/bin/sh
cat <<'END'
{"decision": "approve", "reason": "because"}
END
