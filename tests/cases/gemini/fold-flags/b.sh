#!/bin/sh
cat <<'END'
{"suppressOutput": false, "hookSpecificOutput": {"clearContext": false}}
END
