#!/bin/sh
cat <<'END'
{"permissionDecision": "deny", "updatedInput": {"command": "npm ci"}}
END
