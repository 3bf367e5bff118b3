#!/bin/sh
cat <<'END'
{"decision": "block", "reason": "tests fail"}
END
