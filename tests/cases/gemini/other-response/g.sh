#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"patch": {"model_response": {"text": "***"}}}}
END
