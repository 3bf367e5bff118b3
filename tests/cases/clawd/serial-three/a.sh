#!/bin/sh
cat <<'END'
{"updatedInput": {"command": "npm ci"}}
END
