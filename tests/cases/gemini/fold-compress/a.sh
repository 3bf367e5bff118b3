#!/bin/sh
cat <<'END'
{"systemMessage": "one", "suppressOutput": true}
END
