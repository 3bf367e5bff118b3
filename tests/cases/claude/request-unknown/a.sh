#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "maybe"}}}
END
