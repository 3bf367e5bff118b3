#!/bin/sh
cat <<'END'
{"decision": "block", "reason": "look again"}
END
