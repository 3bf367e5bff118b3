#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"additionalContext": "one"}}
END
