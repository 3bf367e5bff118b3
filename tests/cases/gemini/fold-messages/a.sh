#!/bin/sh
cat <<'END'
{"systemMessage": "one", "hookSpecificOutput": {"additionalContext": "c1"}}
END
