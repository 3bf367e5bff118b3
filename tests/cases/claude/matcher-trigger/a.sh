#!/bin/sh
cat <<'END'
{"systemMessage": "x"}
END
