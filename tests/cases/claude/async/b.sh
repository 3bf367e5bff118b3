#!/bin/sh
cat <<'END'
{"systemMessage": "said"}
END
