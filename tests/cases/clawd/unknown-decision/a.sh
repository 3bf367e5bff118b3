#!/bin/sh
cat <<'END'
{"permissionDecision": "block"}
END
