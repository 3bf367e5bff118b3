#!/bin/sh
cat <<'END'
{"permissionDecisoin": "deny", "hookSpecificOutput": {"additionalContexts": "x"}}
END
