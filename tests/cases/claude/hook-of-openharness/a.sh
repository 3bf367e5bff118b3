#!/bin/sh
cat > told.json
echo '{"hookSpecificOutput":{"patch":{"tool_input":{"command":"npm ci"}}}}'
