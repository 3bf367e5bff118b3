#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"additionalContext": "run the tests"}}
END
