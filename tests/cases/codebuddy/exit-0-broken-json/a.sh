#!/bin/sh
cat <<'END'
{"continue": fal
END
