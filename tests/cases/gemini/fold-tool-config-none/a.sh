#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"toolConfig": {"mode": "ANY", "allowedFunctionNames": ["a"]}}}
END
