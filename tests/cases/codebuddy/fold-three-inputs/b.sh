#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"hookEventName": "PreToolUse", "modifiedInput": {"timeout": 1}}}
END
