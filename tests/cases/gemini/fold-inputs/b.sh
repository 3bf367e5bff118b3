#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"tool_input": {"dir": "web"}}}
END
