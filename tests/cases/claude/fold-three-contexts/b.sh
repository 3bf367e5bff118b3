#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "two"}}
END
