#!/bin/sh
# A rewriter: `npm install` would change the lockfile, `npm ci` does not.
if grep -q '"command":"npm install"'; then
  cat <<'JSON'
{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"command":"npm ci"},"additionalContext":"npm install was changed to npm ci"}}
JSON
fi
