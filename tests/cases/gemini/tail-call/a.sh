#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"tailToolCallRequest": {"name": "read_file", "args": {"path": "a"}}}}
END
