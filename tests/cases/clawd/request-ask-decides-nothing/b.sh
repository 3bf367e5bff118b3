#!/bin/sh
cat <<'END'
{"decision": "approve", "reason": "b"}
END
