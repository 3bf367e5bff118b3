#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"toolConfig": {"mode": "NONE", "allowedFunctionNames": ["b"]}}}
END
