#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"additionalContext": "mind the lockfile"}}
END
