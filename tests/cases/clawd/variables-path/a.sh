#!/bin/sh
printf "%s %s %s %s" "$HOOK_EVENT" "$SESSION_ID" "$PROJECT_DIR" "${FILE_PATH-none}" > told.json
