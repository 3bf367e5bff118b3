#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"tailToolCallRequest": {"name": "b", "args": {}}}}
END
