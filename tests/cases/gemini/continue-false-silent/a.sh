#!/bin/sh
cat <<'END'
{"continue": false}
END
