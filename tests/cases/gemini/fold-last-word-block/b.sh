#!/bin/sh
cat <<'END'
{"decision": "block", "reason": "two"}
END
