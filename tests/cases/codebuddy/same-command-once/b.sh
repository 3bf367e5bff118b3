#!/bin/sh
cat <<'END'
{"systemMessage": "b"}
END
