#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": {"stdout": "[redacted]"}}}
END
