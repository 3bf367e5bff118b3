#!/bin/sh
cat <<'END'
{"systemMessage": "one"}
END
