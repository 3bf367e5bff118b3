#!/bin/sh
cat <<'END'
{"permissionDecision": "deny"}
END
