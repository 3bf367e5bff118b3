#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow", "updatedInput": {"command": "rm -i x"}, "updatedPermissions": [{"type": "addRules"}]}}}
END
