#!/bin/sh
cat <<'END'
{"decision": "approve", "updatedInput": {"command": "npm ci"}}
END
