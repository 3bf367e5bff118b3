#!/bin/sh
cat <<'END'
{"systemMessage": "a"}
END
