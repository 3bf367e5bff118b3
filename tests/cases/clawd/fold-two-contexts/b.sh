#!/bin/sh
cat <<'END'
{"additionalContext": "two"}
END
