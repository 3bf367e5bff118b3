#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"additionalContext": "three"}}
END
