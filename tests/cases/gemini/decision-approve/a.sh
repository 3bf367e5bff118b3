#!/bin/sh
cat <<'END'
{"decision": "approve"}
END
