#!/bin/sh
cat <<'END'
{"decision": "allow"}
END
