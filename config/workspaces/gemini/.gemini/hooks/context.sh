#!/bin/sh
# A context hook: what it says goes to the model with the prompt.
cat <<'JSON'
{"hookSpecificOutput":{"additionalContext":"TASKS.md says what is to be done next."}}
JSON
