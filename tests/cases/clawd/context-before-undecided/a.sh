#!/bin/sh
cat <<'END'
{"additionalContext": "it is slow"}
END
