#!/bin/sh
cat <<'END'
{"decision": "maybe"}
END
