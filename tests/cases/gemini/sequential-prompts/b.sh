#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"additionalContext": "two"}}
END
