#!/bin/sh
cat <<'END'
{"hookSpecificOutput": {"llm_request": {"config": {"temperature": 0}}}}
END
