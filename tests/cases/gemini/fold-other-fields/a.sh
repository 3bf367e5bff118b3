#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"tailToolCallRequest": {"name": "a", "args": {}}}}
END
