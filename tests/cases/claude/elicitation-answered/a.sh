#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"hookEventName": "Elicitation", "action": "accept", "content": {"a": 1}}}
END
