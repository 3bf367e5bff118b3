#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"hookEventName": "PostToolUseFailure", "additionalContext": "install it first"}}
END
