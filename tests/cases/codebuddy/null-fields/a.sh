#!/bin/sh
cat <<'END'
{"decision": null, "reason": null, "hookSpecificOutput": null}
END
