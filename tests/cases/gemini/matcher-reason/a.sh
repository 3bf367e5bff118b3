#!/bin/sh
cat <<'END'
{"systemMessage": "bye"}
END
