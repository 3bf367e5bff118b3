#!/bin/sh
cat <<'END'
{"decision": "allow", "systemMessage": "m2"}
END
