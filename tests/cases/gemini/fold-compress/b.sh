#!/bin/sh
cat <<'END'
{"systemMessage": "two"}
END
