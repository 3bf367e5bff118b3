#!/bin/sh
cat <<'END'
{"permissionDecision": null, "updatedInput": null, "additionalContext": null, "hookSpecificOutput": null}
END
