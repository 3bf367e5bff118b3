#!/bin/sh
cat <<'END'
{"systemMessage": "once"}
END
