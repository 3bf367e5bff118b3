#!/bin/sh
cat <<'END'
{"additionalContext": "run the tests"}
END
