#!/bin/sh
cat <<'END'
{"systemMessage": "two", "hookSpecificOutput": {"additionalContext": "c2"}}
END
