#!/bin/sh
cat <<'END'
{"permissionDecision": 1}
END
