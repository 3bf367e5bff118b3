#!/bin/sh
cat <<'END'
{"decision": "deny", "reason": "again", "hookSpecificOutput": {"clearContext": true}}
END
