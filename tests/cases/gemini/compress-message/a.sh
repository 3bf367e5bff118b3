#!/bin/sh
cat <<'END'
{"systemMessage": "compressing"}
END
