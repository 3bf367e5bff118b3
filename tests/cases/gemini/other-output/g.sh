#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"patch": {"tool_output": {"llmContent": "***"}}}}
END
