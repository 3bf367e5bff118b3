#!/bin/sh
cat <<'END'
{"decision": "deny", "reason": "b"}
END
