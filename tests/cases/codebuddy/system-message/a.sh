#!/bin/sh
cat <<'END'
{"systemMessage": "lint is slow today"}
END
