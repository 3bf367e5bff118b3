#!/bin/sh
cat <<'END'
{"systemMessage": "two", "reason": "r2", "hookSpecificOutput": {"additionalContext": "c2"}}
END
