#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "deny", "message": "not that", "interrupt": true}}}
END
