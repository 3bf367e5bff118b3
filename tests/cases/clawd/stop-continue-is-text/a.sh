#!/bin/sh
cat <<'END'
{"continue": "yes"}
END
