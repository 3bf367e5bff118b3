#!/bin/sh
# A rewriter: `npm install` would change the lockfile, `npm ci` does not. The other arguments stay as they are.
if grep -q '"command":"npm install"'; then
  cat <<'JSON'
{"hookSpecificOutput":{"hookEventName":"PreToolUse","modifiedInput":{"command":"npm ci"},"additionalContext":"npm install was changed to npm ci"}}
JSON
fi
