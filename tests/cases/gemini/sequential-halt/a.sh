#!/bin/sh
cat <<'END'
{"continue": false, "stopReason": "enough"}
END
