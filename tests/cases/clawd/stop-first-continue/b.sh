#!/bin/sh
cat <<'END'
{"continue": true, "reason": "b"}
END
