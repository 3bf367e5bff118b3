#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"additionalContext": "TASKS.md is next"}}
END
