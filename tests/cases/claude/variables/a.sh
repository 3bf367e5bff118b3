#!/bin/sh
printf '{"claude":"%s","codebuddy":"%s"}' "$CLAUDE_PROJECT_DIR" "$CODEBUDDY_PROJECT_DIR" > told.json
