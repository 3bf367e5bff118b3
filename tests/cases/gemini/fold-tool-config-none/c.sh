#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"toolConfig": {"mode": "AUTO"}}}
END
