#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "2 warnings"}}
END
