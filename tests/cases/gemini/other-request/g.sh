#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"patch": {"model_request": {"model_ref": "small"}}}}
END
