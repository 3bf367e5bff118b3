#!/bin/sh
cat <<'END'
{"decision": "block", "reason": "run the tests first"}
END
