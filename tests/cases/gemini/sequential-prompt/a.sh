#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"additionalContext": "it is Monday"}}
END
