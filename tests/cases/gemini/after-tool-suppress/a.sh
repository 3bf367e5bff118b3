#!/bin/sh
cat <<'END'
{"suppressOutput": true}
END
