#!/bin/sh
cat <<'END'
{"decision": "block", "reason": "one"}
END
