#!/bin/sh
cat <<'END'
{"permissionDecision": "allow"}
END
exit 1
