#!/bin/sh
cat <<'END'
{"continue": true, "reason": "c"}
END
