#!/bin/sh
cat <<'END'
{"continue": false, "reason": "done"}
END
