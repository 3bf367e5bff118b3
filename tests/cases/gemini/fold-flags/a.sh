#!/bin/sh
cat <<'END'
{"suppressOutput": true, "hookSpecificOutput": {"clearContext": true}}
END
