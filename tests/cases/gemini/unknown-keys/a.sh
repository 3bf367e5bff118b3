#!/bin/sh
cat <<'END'
{"decison": "deny", "hookSpecificOutput": {"toolInput": {"a": 1}}}
END
