#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"prevent": true, "reason": "a"}}
END
