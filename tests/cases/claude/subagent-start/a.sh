#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"hookEventName": "SubagentStart", "additionalContext": "be brief"}}
END
