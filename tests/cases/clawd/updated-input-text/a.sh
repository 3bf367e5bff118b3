#!/bin/sh
cat <<'END'
{"updatedInput": "npm ci"}
END
