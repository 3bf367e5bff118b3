#!/bin/sh
cat <<'END'
{"systemMessage": 7}
END
