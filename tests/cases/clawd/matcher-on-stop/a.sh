#!/bin/sh
cat <<'END'
{"continue": true}
END
