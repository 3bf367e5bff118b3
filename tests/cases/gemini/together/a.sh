#!/bin/sh
cat <<'END'
{"decision": "allow", "reason": "fine"}
END
