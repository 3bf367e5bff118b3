#!/bin/sh
cat <<'END'
{"decision": "deny"}
END
