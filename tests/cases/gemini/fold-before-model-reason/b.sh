#!/bin/sh
cat <<'END'
{"reason": "two", "systemMessage": "m2"}
END
