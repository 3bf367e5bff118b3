#!/bin/sh
cat <<'END'
{"sytemMessage": "x"}
END
