#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"toolConfig": {"allowedFunctionNames": ["c"]}}}
END
