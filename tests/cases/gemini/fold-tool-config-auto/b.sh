#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"toolConfig": {"mode": "AUTO", "allowedFunctionNames": ["b"]}}}
END
