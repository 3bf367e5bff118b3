#!/bin/sh
cat <<'END'
{"systemMessage": "hi"}
END
