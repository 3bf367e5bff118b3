#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "3 open issues"}}
END
