#!/bin/sh
cat <<'END'
{"decision": "deny", "reason": "one", "systemMessage": "m1"}
END
