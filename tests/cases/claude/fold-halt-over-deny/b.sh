#!/bin/sh
cat <<'END'
{"continue": false, "stopReason": "stop"}
END
