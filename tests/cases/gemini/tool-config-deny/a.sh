#!/bin/sh
cat <<'END'
{"decision": "deny", "reason": "no", "systemMessage": "gone", "hookSpecificOutput": {"toolConfig": {"mode": "NONE", "allowedFunctionNames": ["a"]}, "additionalContext": "gone"}}
END
