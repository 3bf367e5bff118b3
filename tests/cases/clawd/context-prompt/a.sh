#!/bin/sh
cat <<'END'
{"additionalContext": "the branch is main"}
END
