#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"toolConfig": {"mode": "AUTO", "allowedFunctionNames": ["c", "a"]}}}
END
