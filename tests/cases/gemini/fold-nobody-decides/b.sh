#!/bin/sh
cat <<'END'
{"systemMessage": "look"}
END
