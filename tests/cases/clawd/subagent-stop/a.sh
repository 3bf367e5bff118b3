#!/bin/sh
cat <<'END'
{"continue": true, "reason": "not yet"}
END
