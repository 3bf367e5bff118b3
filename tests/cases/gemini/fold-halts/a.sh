#!/bin/sh
cat <<'END'
{"continue": false, "stopReason": "one"}
END
