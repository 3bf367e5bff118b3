#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "today is Monday"}}
END
