#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"toolConfig": {"mode": "ANY", "allowedFunctionNames": ["b", "a"]}}}
END
