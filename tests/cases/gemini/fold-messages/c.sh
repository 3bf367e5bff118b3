#!/bin/sh
cat <<'END'
{"reason": "r3"}
END
