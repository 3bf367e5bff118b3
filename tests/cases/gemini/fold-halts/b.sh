#!/bin/sh
cat <<'END'
{"continue": false, "stopReason": "two"}
END
