#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"hookEventName": "PreToolUse", "modifiedInput": {"timeout": 9}}}
END
