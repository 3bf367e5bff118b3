#!/bin/sh
cat <<'END'
{"permissionDecision": "allow", "updatedInput": {"command": "ls"}}
END
echo no >&2; exit 2
