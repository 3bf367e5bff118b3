#!/bin/sh
cat <<'END'
{"decision": "allow", "reason": "because"}
END
